"""Plain text into TFX: the interface is in `component`, the Beam work in `executor`."""
