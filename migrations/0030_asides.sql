-- Why an utterance is no part of the story: "whisper", "planning", "out_of_character" or "command". No NPC has heard it, and
-- nothing is learned or told from it. Empty for anything else.
ALTER TABLE session_entries ADD COLUMN aside TEXT NOT NULL DEFAULT '';

CREATE OR REPLACE VIEW utterances WITH (security_invoker = true) AS
    SELECT e.campaign_id, e.id, e.session_id, e.ordinal, e.utterance_id, e.speaker_id, e.speaker_name, e.text, e.raw_text,
           e.npc_id, e.timestamp, e.duration_ns, e.witnesses, e.retracted, e.fts, e.names,
           (SELECT jsonb_agg(jsonb_build_object('start', c.start_char, 'end', c.end_char, 'before', c.before,
                                                'after', c.after, 'score', c.score, 'stage', c.stage,
                                                'reason', c.reason) ORDER BY c.start_char, c.ordinal)
              FROM corrections c
             WHERE c.campaign_id = e.campaign_id AND c.utterance_id = e.utterance_id) AS corrections, e.withheld,
           e.aside
      FROM session_entries e;
