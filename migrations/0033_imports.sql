-- Documents of other tools, and the DM's decisions about them. Entities and facts come from what was accepted.

CREATE TABLE import_sources (
    campaign_id TEXT   NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    source      TEXT   NOT NULL,                     -- "foundry:my-world"
    name        TEXT   NOT NULL,
    remarks     TEXT[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (campaign_id, source)
);

CREATE TABLE import_documents (
    campaign_id     TEXT    NOT NULL,
    source          TEXT    NOT NULL,
    key             TEXT    NOT NULL,
    name            TEXT    NOT NULL,                -- this and the type: with the DM's edits
    type            TEXT    NOT NULL,
    kind            TEXT    NOT NULL,
    folders         TEXT[]  NOT NULL DEFAULT '{}',
    document        JSONB   NOT NULL,                -- as the source has it
    digest          TEXT    NOT NULL,
    decision        TEXT    NOT NULL CHECK (decision IN ('waiting', 'accepted', 'skipped')),
    edit            JSONB   NOT NULL DEFAULT '{}',
    accepted        JSONB,                           -- as it was accepted, its texts shortened; NULL: never
    accepted_digest TEXT,                            -- of `document` then
    entity          TEXT,                            -- that it is part of, since it was accepted
    is_own          BOOLEAN NOT NULL DEFAULT FALSE,  -- the entity exists because of it
    is_read         BOOLEAN NOT NULL DEFAULT TRUE,   -- no text of it has to be read for claims
    PRIMARY KEY (campaign_id, source, key),
    FOREIGN KEY (campaign_id, source) REFERENCES import_sources (campaign_id, source) ON DELETE CASCADE
);
CREATE INDEX idx_import_documents_entity ON import_documents (campaign_id, entity) WHERE entity IS NOT NULL;
CREATE INDEX idx_import_documents_unread ON import_documents (campaign_id, source, key) WHERE NOT is_read;

SELECT glyphoxa_isolate();
