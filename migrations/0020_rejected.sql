-- What was recalled and had no place in a prompt is called rejected, as everywhere else. A renamed column keeps its rows.

ALTER TABLE turns RENAME COLUMN passed_over TO rejected;
