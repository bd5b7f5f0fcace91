-- How a campaign tells the time: where its table is, and the days of its story.

-- As its file has it, like `campaigns.language`: what is read with every question is not looked for in the document.
CREATE TABLE campaign_times (
    campaign_id TEXT PRIMARY KEY REFERENCES campaigns (id) ON DELETE CASCADE,
    time_zone   TEXT NOT NULL,   -- an IANA name; empty for that of the machine
    calendar    JSONB,           -- NULL if the story counts no days
    story_day   TEXT NOT NULL    -- where it stood when the file was last loaded; empty if the file does not say
);

-- Which day of the story it was said to be, in order. Days are kept as they are written and not as numbers: who adds
-- a month to a calendar moves no evening. No reference to sessions: a day is told before anything is said in one.
CREATE TABLE story_days (
    campaign_id TEXT NOT NULL,
    id          BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY,
    session_id  TEXT NOT NULL,   -- on this day too it was played; empty: the next one begins on it
    day         TEXT NOT NULL,
    file_day    TEXT NOT NULL,   -- what the campaign file said then: when it says something else, that is news
    told_at     TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (campaign_id, id)
);

SELECT glyphoxa_isolate();
