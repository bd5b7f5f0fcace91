-- Facts and entities are found by their words in memory, and a commit is planned there. Nothing reads these indexes any
-- more, and each write paid for them.
DROP INDEX idx_entities_words, idx_rel_words, idx_attribute_facts_words, idx_rel_disputes, idx_attribute_facts_disputes;
