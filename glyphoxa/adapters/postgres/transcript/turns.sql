-- latest --
-- The newest turns; of the session $2 and the NPC $3 if they are not NULL. Without their long prompts. Served by
-- idx_turns_latest, idx_turns_session_id and idx_turns_of_npc.
SELECT id, session_id, speaker_id, speaker_name, raw_text, text, npc_id, address_reason, outcome, reply, reply_heard,
       recalled, stages, omitted, '' AS prompt_text, error, rejected, looked_up, utterance_id, reply_id,
       parts, tier, tier_reason, unsaid
  FROM turns
 WHERE campaign_id = $1 AND ($2::text IS NULL OR session_id = $2) AND ($3::text IS NULL OR npc_id = $3)
 ORDER BY created_at DESC, id DESC
 LIMIT $4;

-- turn --
-- Served by the primary key.
SELECT id, session_id, speaker_id, speaker_name, raw_text, text, npc_id, address_reason, outcome, reply, reply_heard,
       recalled, stages, omitted, prompt_text, error, rejected, looked_up, utterance_id, reply_id,
       parts, tier, tier_reason, unsaid
  FROM turns
 WHERE campaign_id = $1 AND id = $2;

-- ending_with --
-- The newest turns whose id ends with $2; of the session $3 and the NPC $4 if they are not NULL. Reads the ids of all
-- candidate turns: a DM types this a few times in an evening.
SELECT id
  FROM turns
 WHERE campaign_id = $1 AND right(id, length($2)) = $2
   AND ($3::text IS NULL OR session_id = $3) AND ($4::text IS NULL OR npc_id = $4)
 ORDER BY created_at DESC, id DESC
 LIMIT $5;

-- uttered --
-- With their judgements. Served by the keys of (campaign_id, utterance_id).
SELECT u.utterance_id, u.session_id, u.ordinal, u.speaker_name, u.text, u.timestamp, u.retracted, u.withheld,
       u.aside, u.corrections,
       j.mode, j.risk, j.flags, j.note, j.extract_memory, j.judged_by, j.reason
  FROM utterances u
  LEFT JOIN turn_judgements j ON j.campaign_id = $1 AND j.utterance_id = u.utterance_id
 WHERE u.campaign_id = $1 AND u.utterance_id = ANY ($2);
