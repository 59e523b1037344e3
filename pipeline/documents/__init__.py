"""Files whose texts are translated in place: everything else in them stays byte for byte."""
