//! Changing an object by JSON patch, merge patch or strategic merge patch.
