//! What is documented happens, word for word: the README, the guide, the scenarios and refusals. See `what_if/`.

#[test]
fn documents_show_what_happens() {
    // Paths in the documents start at the top of the repository.
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
    let cases = trycmd::TestCases::new();
    cases.case("crates/cli/tests/what_if/*.trycmd");
    cases.case("docs/guide/what-if.md");
    cases.case("docs/guide/place.md");
    cases.case("docs/guide/estimate.md");
    cases.case("docs/guide/divide.md");
    cases.case("docs/guide/protect.md");
    cases.case("README.md");
}
