-- Who may know of an entity decides whether players may read its name: an open table follows that as it follows names.
CREATE TRIGGER entities_shown_or_hidden AFTER UPDATE ON entities
    FOR EACH ROW WHEN ((OLD.scope = 'public') IS DISTINCT FROM (NEW.scope = 'public'))
    EXECUTE FUNCTION glyphoxa_names_changed('id');
