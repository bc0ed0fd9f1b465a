//! What the command line prints, word for word: help, version and refusals. See `cmd/`.

#[test]
fn help_and_errors_read_as_written() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd");
}
