"""Commands in Discord: adapters over the services that desk and command line use."""
