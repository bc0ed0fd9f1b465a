//! A seeded layer of faults in front of the server, for tests.
