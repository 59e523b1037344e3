"""Ground that every package stands on."""
