//! What of the user's own settings and environment reaches a client (`agents.NAME.inherit`), and what does not.

use serde_json::json;
use tribunal_testkit::model::{
    Call, Rule, Step,
    parts::{finding, findings_of, fixing, reviewer},
};

use crate::common::{Bench, Client, VAGUE};

const SETTINGS: &str = "../home/claude/settings.json";

fn claude() -> Bench {
    Bench::new(&[Client::Claude], [reviewer(1, &[finding("high", "fast is vague", VAGUE)])])
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn a_person_who_signs_in_by_their_settings_is_signed_in() {
    let mut bench = claude();
    let url = format!("http://{}", bench.server.address());
    let settings = json!({"apiKeyHelper": "echo sk-from-helper", "env": {"ANTHROPIC_BASE_URL": url}});
    bench.sandbox.write(SETTINGS, &settings.to_string());
    bench.forget(&["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]);
    bench.look();
    assert!(bench.server.tally().requests.iter().all(|request| request.authorised));
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn a_person_s_own_words_to_their_client_are_theirs() {
    let words = "The person likes short sentences.";
    for (inherit, told) in [("nothing", false), ("user", false), ("project", true)] {
        let bench = claude();
        bench.settle("agents: {", &format!("agents: {{claude-code: {{inherit: {inherit}}}, "));
        bench.sandbox.write("../home/claude/CLAUDE.md", words);
        bench.look();
        let sent = bench.server.tally().requests[0].body.to_string();
        assert_eq!(sent.contains(words), told, "inherit {inherit}");
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn the_model_a_person_set_for_their_client_is_asked() {
    let bench = claude();
    bench.sandbox.write(SETTINGS, &json!({"model": "claude-opus-4-5"}).to_string());
    bench.look();
    assert_eq!(bench.server.tally().requests[0].model, "claude-opus-4-5");
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn commands_of_codex_see_no_keys() {
    let found = Step::structured(findings_of(&[finding("high", "fast is vague", VAGUE)]));
    let gave_up = json!({"id": "F1", "status": "BLOCKED", "fix_description": "x", "files_modified": []});
    let look = || Step::calls([Call::Shell("env".into())]);
    let mut bench = Bench::new(
        &[Client::Codex],
        [
            Rule::on("You are one reviewer", [look(), found]),
            Rule::when(fixing("fast is vague"), [look(), Step::structured(json!({ "fixes": [gave_up] }))]),
        ],
    );
    bench.give(&[("MY_SECRET", "hush"), ("PLAIN_THING", "plain")]);
    bench.expect(&["review", "plan.md"], 3);
    let tally = bench.server.tally();
    let seen: Vec<String> = tally
        .requests
        .iter()
        .filter(|request| request.rounds == 1)
        .map(|request| request.results.join("\n"))
        .collect();
    let [reviewer, fixer] = seen.as_slice() else { panic!("{seen:?}") };
    for shown in [reviewer, fixer] {
        assert!(shown.contains("PATH="), "no environment at all: {shown}");
        for name in ["MY_SECRET", "ANTHROPIC_API_KEY", "MODEL_SERVER_KEY"] {
            assert!(!shown.contains(name), "{name}: {shown}");
        }
    }
    assert_eq!([reviewer, fixer].map(|shown| shown.contains("PLAIN_THING=plain")), [false, true]);
}
