//! What `what-if` answers, word for word: the scenarios, the guide, and refusals. See `what_if/`.

#[test]
fn answers_and_refusals_read_as_written() {
    // Paths in the guide start at the top of the repository.
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
    let cases = trycmd::TestCases::new();
    cases.case("crates/cli/tests/what_if/*.trycmd");
    cases.case("docs/guide/what-if.md");
}
