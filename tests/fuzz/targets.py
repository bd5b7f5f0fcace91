"""All targets."""

from __future__ import annotations

from tests.fuzz import (
    bundle_file,
    campaign_yaml,
    csv_tables,
    import_files,
    llm_answer,
    page_message,
    sdp_offer,
    settings_yaml,
    spool_record,
)

TARGETS = (
    page_message.TARGET,
    sdp_offer.TARGET,
    campaign_yaml.TARGET,
    settings_yaml.TARGET,
    spool_record.TARGET,
    llm_answer.TARGET,
    bundle_file.TARGET,
    csv_tables.TARGET,
    *import_files.TARGETS,
)
