-- Memory level 3: entities and typed relationships.
-- `origin` says where a row came from: loading a campaign file replaces the rows that a file brought, and no others.

CREATE TABLE entities (
    campaign_id TEXT NOT NULL,
    id          TEXT NOT NULL,
    type        TEXT NOT NULL,
    name        TEXT NOT NULL,
    aliases     TEXT[] NOT NULL DEFAULT '{}',
    attributes  JSONB NOT NULL DEFAULT '{}',
    origin      TEXT NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (campaign_id, id),
    FOREIGN KEY (campaign_id) REFERENCES campaigns (id) ON DELETE CASCADE
);

CREATE INDEX idx_entities_type ON entities (campaign_id, type);
CREATE INDEX idx_entities_name ON entities (campaign_id, name);

CREATE TABLE relationships (
    campaign_id TEXT NOT NULL,
    source_id   TEXT NOT NULL,
    target_id   TEXT NOT NULL,
    rel_type    TEXT NOT NULL,
    attributes  JSONB NOT NULL DEFAULT '{}',
    provenance  JSONB NOT NULL DEFAULT '{}',    -- session_id, timestamp, confidence, source, dm_confirmed
    origin      TEXT NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (campaign_id, source_id, target_id, rel_type),
    FOREIGN KEY (campaign_id, source_id) REFERENCES entities (campaign_id, id) ON DELETE CASCADE,
    FOREIGN KEY (campaign_id, target_id) REFERENCES entities (campaign_id, id) ON DELETE CASCADE
);

CREATE INDEX idx_rel_source ON relationships (campaign_id, source_id);
CREATE INDEX idx_rel_target ON relationships (campaign_id, target_id);
CREATE INDEX idx_rel_type ON relationships (campaign_id, rel_type);
CREATE INDEX idx_rel_provenance_confidence ON relationships ((provenance->>'confidence'));
-- Queries compare numbers, which the index on text cannot serve.
CREATE INDEX idx_rel_confidence_number ON relationships (campaign_id, ((provenance->>'confidence')::float8));
