//! What did acting release, compared with what was predicted?
