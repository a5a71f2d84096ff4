//! What is an error, in the words in which it is told.

use super::super::Catalogue;
use super::{refused, warned, with};

#[test]
fn a_name_that_is_not_declared_is_refused() {
    refused(
        "toolsets = [\"ledger\"]",
        "toolsets = [\"ledgr\"]",
        "error: configurations.support.toolsets[0] names the toolset `ledgr`, which is not declared, \
         line 31, column 13: did you mean `ledger`?",
    );
    refused(
        "tools = [\"read\", \"refund\"]",
        "tools = [\"read\", \"refnd\", \"read\"]",
        "error: toolsets.ledger.tools[1] names the tool `refnd`, which is not declared, line 38, column 18: \
         did you mean `refund`?",
    );
    refused(
        "tools = [\"read\", \"refund\"]",
        "tools = [\"read\", \"refnd\", \"read\"]",
        "error: `read` stands twice in toolsets.ledger.tools, line 38, column 27",
    );
    refused(
        "provider = \"hosted\"",
        "provider = \"x\"",
        "error: models.large.provider names the provider `x`, which is not declared, line 17, column 1",
    );
    refused(
        "fallbacks = [\"spare\"]",
        "fallbacks = [\"large\"]",
        "error: configurations.support has `large` as its model and as a fallback, line 26, column 17",
    );
}

#[test]
fn a_value_that_cannot_be_is_refused() {
    for (line, other, expected) in [
        (
            "timeout = \"5s\"",
            "timeout = \"0s\"",
            "tools.refund.timeout must be from 1ms to 1d, line 58, column 1",
        ),
        (
            "timeout = \"5s\"",
            "timeout = 5",
            "tools.refund.timeout must be a duration in quotes, such as \"30s\", not a whole number, line 58, column 1",
        ),
        (
            "max_iterations = 8",
            "max_iterations = 0",
            "configurations.support.max_iterations must be from 1 to 1000, line 33, column 1",
        ),
        (
            "approval_ttl = \"2h\"",
            "approval_ttl = \"500ms\"",
            "configurations.support.approval_ttl must be from 1s to 3650d, line 34, column 1",
        ),
        (
            "enabled = false",
            "enabled = \"false\"",
            "tools.refund.enabled must be `true` or `false`, not a text, line 54, column 1",
        ),
        (
            "effect = \"read_only\"",
            "effect = \"readonly\"",
            "tools.read.effect must be one of `read_only`, `idempotent_write`, `non_idempotent_write`, \
             line 43, column 1: did you mean `read_only`?",
        ),
        (
            "function = \"ledger_read\"",
            "function = \"ledger_refund\"",
            "tools.read.effect is `read_only`, but the built-in function writes, line 43, column 1",
        ),
        (
            "function = \"ledger_read\"",
            "url = \"https://example.org\"",
            "the key `url` is out of place in tools.read: it belongs to a tool of the kind `http`, line 42, column 1",
        ),
        (
            "function = \"ledger_read\"",
            "",
            "tools.read needs the key `function`, line 40, column 8",
        ),
        (
            "bearer_file = \"/run/secrets/ledger\"",
            "bearer_file = \"a\"\nbearer_env = \"B\"",
            "tools.refund has both `bearer_env` and `bearer_file`; one source must be named, line 50, column 1",
        ),
        (
            "[models.spare]",
            "[models.\"\"]",
            "a name in models.\"\" is empty, line 22, column 9",
        ),
        (
            "[tools.read]",
            "[tools.\"read it\"]",
            "tools.\"read it\" cannot be offered to a model: use 1 to 64 letters, digits, `_` or `-`, line 40, column 8",
        ),
        (
            "parameters = { temperature = 0.5, seed = 7 }",
            "parameters = { stream = true }",
            "models.large.parameters sets `stream`, which each request sets itself, line 20, column 1",
        ),
        (
            "parameters = { temperature = 0.5, seed = 7 }",
            "parameters = '[1]'",
            "models.large.parameters is no JSON object (line 1, column 0 of it), line 20, column 1",
        ),
        (
            "parameters = { temperature = 0.5, seed = 7 }",
            "parameters = { a = [nan] }",
            "models.large.parameters holds a number that is infinite or none, which JSON cannot express, \
             line 20, column 1",
        ),
    ] {
        refused(line, other, &format!("error: {expected}"));
    }
}

#[test]
fn a_url_is_one_that_can_be_called_and_holds_no_secret() {
    for (url, fault) in [
        ("ledger/refund", "is no URL: relative URL without a base"),
        (
            "ftp://ledger.example.org",
            "must begin with `http://` or `https://`",
        ),
        ("https://", "is no URL: empty host"),
        (
            "https://u:p@example.org",
            "must not hold a user or a password: a catalogue holds no secrets",
        ),
        ("https://example.org/a b", "has a blank in it"),
    ] {
        let line = "url = \"https://ledger.example.org/refund\"";
        refused(
            line,
            &format!("url = \"{url}\""),
            &format!("error: tools.refund.url {fault}, line 49, column 1"),
        );
    }
    let base = "base_url = \"https://models.example.org/v1/\"";
    refused(
        base,
        "base_url = \"https://a.example/v1/chat/completions\"",
        "error: providers.hosted.base_url must end before `/chat/completions`, which is added, line 7, column 1",
    );
    warned(
        base,
        "base_url = \"http://a.example/v1\"",
        "warning: providers.hosted.base_url is plain http: the key is sent to it in clear, line 7, column 1",
    );
}

#[test]
fn a_secret_in_the_place_of_its_source_is_not_repeated() {
    let (catalogue, problems) = with("key_env = \"MODELS_KEY\"", "key_env = \"sk-hunter2\"");
    assert!(catalogue.is_none());
    assert_eq!(
        problems,
        ["error: providers.hosted.key_env must be the name of an environment variable, line 8, column 1"]
    );
}

#[test]
fn a_text_that_is_wrong_all_over_is_still_judged_soon() {
    let many = |count: usize, line: fn(usize) -> String| (0..count).map(line).collect::<Vec<_>>().join("\n");
    let warnings = many(20_000, |index| format!("[toolsets.s{index}]\ntools = []"));
    let (catalogue, problems) = Catalogue::check(&warnings);
    assert!(catalogue.is_some() && problems.len() == 201);
    assert_eq!(
        problems.iter().next().unwrap().to_string(),
        "warning: 19800 more problems are not shown"
    );

    // An error is never lost among them, and one line may hold them all.
    let dangling = many(20_000, |index| format!("\"x{index}\","));
    let (catalogue, problems) = Catalogue::check(&format!(
        "{warnings}\n[toolsets.all]\ntools = [{}]",
        dangling.replace('\n', "")
    ));
    assert!(catalogue.is_none() && problems.has_errors());
}
