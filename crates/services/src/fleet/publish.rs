//! How much of a member is requested and used? Told to the hub.
