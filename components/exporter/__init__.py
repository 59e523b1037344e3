"""TFX component: trained network to served model."""
