//! Full reviews with both clients on one panel: findings, disputes, fixes and a second round; also with an
//! interruption.

use std::process::Command;

use tribunal_testkit::model::{
    ModelRequest, RequestLog, ScenarioRule,
    review_rules::{
        ScriptedEdit, challenger_rule, finding_json, fixed_json, fixer_rule, reviewer_rule, seat_rule, verdict_json,
    },
};

use crate::common::{CLEAR_SENTENCE, Client, ClientTestbed, VAGUE_SENTENCE, clients_with_home, str_field};

const PRD_TEXT: &str = "# Product\n\n## Goals\n\nIt shall be fast.\n\n## Risks\n\nNone are known.\n\n## Audit\n\n\
                   Every access is written to the audit log and kept for ten years.\n";

/// Two reviewers see the vague goal; one also misses something that is there.
fn first_round_rules() -> Vec<ScenarioRule> {
    let vague_finding = || finding_json("high", "fast is vague", VAGUE_SENTENCE);
    let audit_finding = finding_json("high", "nothing is said of auditing", "None are known.");
    vec![
        seat_rule("adversarial", 1, &[vague_finding(), audit_finding]),
        seat_rule("party", 1, &[vague_finding()]),
        reviewer_rule(1, &[]),
    ]
}

/// The false finding is refuted, the true one repaired, and nothing else is found.
fn later_rules() -> Vec<ScenarioRule> {
    let refuting_verdict = verdict_json("F2", "INVALID", "Every access is written to the audit log");
    let edit = ScriptedEdit { path: "plan.md", old_text: VAGUE_SENTENCE, new_text: CLEAR_SENTENCE };
    vec![
        challenger_rule("auditing", &[refuting_verdict]),
        fixer_rule("fast is vague", &[edit], &[fixed_json("F1")]),
        reviewer_rule(2, &[]),
    ]
}

const REVIEW_COMMAND: [&str; 4] = ["review", "plan.md", "--level", "full"];

fn mixed_testbed(rules: Vec<ScenarioRule>) -> ClientTestbed {
    let testbed = ClientTestbed::new(&Client::ALL, rules);
    testbed.replace_in_settings("tier: 0", "tier: 3");
    testbed.sandbox.write_file("plan.md", PRD_TEXT);
    testbed
}

fn expect_repaired(testbed: &ClientTestbed) {
    assert_eq!(testbed.list_findings(), ["F1 fixed", "F2 dismissed"]);
    assert_eq!(testbed.sandbox.read_file("plan.md"), PRD_TEXT.replace(VAGUE_SENTENCE, CLEAR_SENTENCE));
    assert_eq!(testbed.unscripted_prompts(), [""; 0]);
    assert_eq!(testbed.sandbox.temporary_leftovers(), [""; 0].map(std::path::PathBuf::from));
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn a_mixed_panel_finds_disputes_repairs_and_reviews_again() {
    let gated_rules = first_round_rules().into_iter().map(|rule| rule.gated("all are seated"));
    let testbed = mixed_testbed(gated_rules.chain(later_rules()).collect());
    let started_review = testbed.start_until(&REVIEW_COMMAND, |_| true);
    testbed.server.wait_until("three seats at the same time", |server_tally| server_tally.live_requests == 3);
    testbed.server.open_gate("all are seated");
    assert_eq!(started_review.wait_for_end(), Some(0));
    expect_repaired(&testbed);
    let server_tally = testbed.server.request_log();
    for client in Client::ALL {
        assert!(
            server_tally.requests.iter().any(|request| request.api == client.model_api()),
            "{client:?} was not asked"
        );
    }
    // The scripted model reports 100 tokens in and 20 out for each of its answers.
    let request_count = server_tally.requests.len() as u64;
    assert_eq!(sum_tokens(&testbed), [100 * request_count, 20 * request_count]);
    let sent_document = testbed.sandbox.run_json(&["log", "--sent"]);
    let vendors: Vec<&str> =
        sent_document["vendors"].as_array().unwrap().iter().map(|vendor_row| str_field(vendor_row, "vendor")).collect();
    assert_eq!(vendors, ["anthropic", "openai"]);
}

/// Sums up tokens in and out from the journal.
fn sum_tokens(testbed: &ClientTestbed) -> [u64; 2] {
    let run_journal = testbed.last_journal();
    let usages = run_journal.iter().filter_map(|journal_entry| journal_entry["reply"].get("usage")).collect::<Vec<_>>();
    assert!(usages.iter().all(|usage| usage["estimated"] != true), "{usages:?}");
    ["input_tokens", "output_tokens"]
        .map(|field_name| usages.iter().filter_map(|usage| usage[field_name].as_u64()).sum())
}

fn is_fixer(request: &ModelRequest) -> bool {
    request.first_text.contains("You are a fixer")
}

/// A moment of a review, with the condition by which it is recognized.
type KillMoment = (&'static str, fn(&RequestLog) -> bool);

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn a_killed_review_ends_in_the_same_way_after_a_resume() {
    let moments: [KillMoment; 2] = [
        ("in the midst of the panel", |server_tally| server_tally.requests.len() >= 2),
        ("in the midst of a fix", |server_tally| {
            server_tally.requests.iter().any(|request| is_fixer(request) && request.tool_rounds == 1)
        }),
    ];
    for (moment_name, has_come) in moments {
        let testbed = mixed_testbed(first_round_rules().into_iter().chain(later_rules()).collect());
        let started_review = testbed.start_until(&REVIEW_COMMAND, |_| true);
        testbed.server.wait_until(moment_name, has_come);
        started_review.kill();
        testbed.run_expecting(&["resume"], 0);
        expect_repaired(&testbed);
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn a_stopped_review_ends_its_clients_and_can_be_resumed() {
    let gated_rules = first_round_rules().into_iter().map(|rule| rule.gated("later"));
    let testbed = mixed_testbed(gated_rules.chain(later_rules()).collect());
    let started_review = testbed.start_until(&REVIEW_COMMAND, |_| true);
    testbed.server.wait_until("a panel at work", |server_tally| server_tally.live_requests == 3);
    assert!(clients_with_home(&testbed.sandbox.home_dir()).len() >= 3);
    assert_eq!(started_review.terminate(), Some(130));
    assert_eq!(clients_with_home(&testbed.sandbox.home_dir()), [""; 0]);
    testbed.server.open_gate("later");
    testbed.run_expecting(&["resume"], 0);
    expect_repaired(&testbed);
}

const CODE_BEFORE: &str = "fn work() {\n    one();\n    two();\n    three();\n}\n";

fn run_git(testbed: &ClientTestbed, arguments: &[&str]) {
    let mut git_command = Command::new("git");
    git_command.args(["-c", "user.name=n", "-c", "user.email=e@e", "-c", "commit.gpgSign=false"]).args(arguments);
    testbed.sandbox.set_home_env(&mut git_command);
    let output = git_command.current_dir(testbed.sandbox.root_dir()).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn a_code_change_is_reviewed_and_repaired() {
    let new_edit = |file_path| ScriptedEdit { path: file_path, old_text: "todo_", new_text: "done_" };
    let testbed = ClientTestbed::new(
        &Client::ALL,
        [
            reviewer_rule(
                1,
                &[
                    finding_json("high", "a is not done", "todo_a();"),
                    finding_json("high", "b is not done", "todo_b();"),
                ],
            ),
            fixer_rule(
                "is not done",
                &[new_edit("src/a.rs"), new_edit("src/b.rs")],
                &[fixed_json("F1"), fixed_json("F2")],
            ),
            reviewer_rule(2, &[]),
        ],
    );
    testbed.replace_in_settings("tasks: {", "tasks: {max_concurrent_fixers: 1, ");
    for source_file in ["src/a.rs", "src/b.rs"] {
        testbed.sandbox.write_file(source_file, CODE_BEFORE);
    }
    run_git(&testbed, &["init", "-q", "-b", "main"]);
    run_git(&testbed, &["add", "-A"]);
    run_git(&testbed, &["commit", "-q", "-m", "x"]);
    let code_with = |call_name: &str| CODE_BEFORE.replace("two", call_name);
    testbed.sandbox.write_file("src/a.rs", &code_with("todo_a"));
    testbed.sandbox.write_file("src/b.rs", &code_with("todo_b"));

    testbed.run_expecting(&["review", "--work-tree", "--level", "dual", "--tier", "2"], 0);
    assert_eq!(testbed.list_findings(), ["F1 fixed", "F2 fixed"]);
    assert_eq!(testbed.sandbox.read_file("src/a.rs"), code_with("done_a"));
    assert_eq!(testbed.sandbox.read_file("src/b.rs"), code_with("done_b"));
    assert_eq!(testbed.unscripted_prompts(), [""; 0]);
}
