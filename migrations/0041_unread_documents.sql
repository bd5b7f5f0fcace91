-- Imported pages are no longer read for facts, so nothing asks which of them are unread.

DROP INDEX idx_import_documents_unread;
