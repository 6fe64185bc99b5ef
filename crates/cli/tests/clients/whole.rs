//! Full reviews with both clients on one panel: findings, disputes, fixes and a second round; also with an
//! interruption.

use std::process::Command;

use tribunal_testkit::model::{
    Request, Rule, Tally,
    parts::{Edit, challenger, finding, fixed, fixer, reviewer, seat, verdict},
};

use crate::common::{Bench, CLEAR, Client, VAGUE, clients_at, word};

const PRD: &str = "# Product\n\n## Goals\n\nIt shall be fast.\n\n## Risks\n\nNone are known.\n\n## Audit\n\n\
                   Every access is written to the audit log and kept for ten years.\n";

/// Two reviewers see the vague goal; one also misses something that is there.
fn first_round() -> Vec<Rule> {
    let vague = || finding("high", "fast is vague", VAGUE);
    let audit = finding("high", "nothing is said of auditing", "None are known.");
    vec![seat("adversarial", 1, &[vague(), audit]), seat("party", 1, &[vague()]), reviewer(1, &[])]
}

/// The false finding is refuted, the true one repaired, and nothing else is found.
fn afterwards() -> Vec<Rule> {
    let refuted = verdict("F2", "INVALID", "Every access is written to the audit log");
    let edit = Edit { path: "plan.md", old: VAGUE, new: CLEAR };
    vec![
        challenger("auditing", &[refuted]),
        fixer("fast is vague", &[edit], &[fixed("F1")]),
        reviewer(2, &[]),
    ]
}

const REVIEW: [&str; 4] = ["review", "plan.md", "--level", "full"];

fn mixed(rules: Vec<Rule>) -> Bench {
    let bench = Bench::new(&Client::ALL, rules);
    bench.settle("tier: 0", "tier: 3");
    bench.sandbox.write("plan.md", PRD);
    bench
}

fn is_repaired(bench: &Bench) {
    assert_eq!(bench.findings(), ["F1 fixed", "F2 dismissed"]);
    assert_eq!(bench.sandbox.read("plan.md"), PRD.replace(VAGUE, CLEAR));
    assert_eq!(bench.unscripted(), [""; 0]);
    assert_eq!(bench.sandbox.litter(), [""; 0].map(std::path::PathBuf::from));
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn a_mixed_panel_finds_disputes_repairs_and_looks_again() {
    let seats = first_round().into_iter().map(|rule| rule.gated("all are seated"));
    let bench = mixed(seats.chain(afterwards()).collect());
    let run = bench.start(&REVIEW, |_| true);
    bench.server.wait_until("three seats at the same time", |tally| tally.live == 3);
    bench.server.open("all are seated");
    assert_eq!(run.end(), Some(0));
    is_repaired(&bench);
    let tally = bench.server.tally();
    for client in Client::ALL {
        assert!(tally.requests.iter().any(|request| request.api == client.api()), "{client:?} was not asked");
    }
    // The scripted model reports 100 tokens in and 20 out for each of its answers.
    let requests = tally.requests.len() as u64;
    assert_eq!(used(&bench), [100 * requests, 20 * requests]);
    let sent = bench.sandbox.json(&["log", "--sent"]);
    let vendors: Vec<&str> =
        sent["vendors"].as_array().unwrap().iter().map(|row| word(row, "vendor")).collect();
    assert_eq!(vendors, ["anthropic", "openai"]);
}

/// Sums up tokens in and out from the journal.
fn used(bench: &Bench) -> [u64; 2] {
    let journal = bench.journal();
    let usages = journal.iter().filter_map(|entry| entry["reply"].get("usage")).collect::<Vec<_>>();
    assert!(usages.iter().all(|usage| usage["estimated"] != true), "{usages:?}");
    ["input_tokens", "output_tokens"].map(|name| usages.iter().filter_map(|usage| usage[name].as_u64()).sum())
}

fn is_fixer(request: &Request) -> bool {
    request.first.contains("You are a fixer")
}

/// A moment of a review, with the condition by which it is recognized.
type Moment = (&'static str, fn(&Tally) -> bool);

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn a_review_that_is_killed_comes_to_the_same_end() {
    let moments: [Moment; 2] = [
        ("in the midst of the panel", |tally| tally.requests.len() >= 2),
        ("in the midst of a fix", |tally| {
            tally.requests.iter().any(|request| is_fixer(request) && request.rounds == 1)
        }),
    ];
    for (moment, holds) in moments {
        let bench = mixed(first_round().into_iter().chain(afterwards()).collect());
        let run = bench.start(&REVIEW, |_| true);
        bench.server.wait_until(moment, holds);
        run.kill();
        bench.expect(&["resume"], 0);
        is_repaired(&bench);
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn a_review_that_is_stopped_ends_its_clients_and_goes_on_later() {
    let seats = first_round().into_iter().map(|rule| rule.gated("later"));
    let bench = mixed(seats.chain(afterwards()).collect());
    let run = bench.start(&REVIEW, |_| true);
    bench.server.wait_until("a panel at work", |tally| tally.live == 3);
    assert!(clients_at(&bench.sandbox.home()).len() >= 3);
    assert_eq!(run.terminate(), Some(130));
    assert_eq!(clients_at(&bench.sandbox.home()), [""; 0]);
    bench.server.open("later");
    bench.expect(&["resume"], 0);
    is_repaired(&bench);
}

const BEFORE: &str = "fn work() {\n    one();\n    two();\n    three();\n}\n";

fn git(bench: &Bench, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=n", "-c", "user.email=e@e", "-c", "commit.gpgSign=false"]).args(arguments);
    bench.sandbox.at_home(&mut git);
    let output = git.current_dir(bench.sandbox.root()).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn a_change_of_code_is_reviewed_and_repaired() {
    let edit = |path| Edit { path, old: "todo_", new: "done_" };
    let bench = Bench::new(
        &Client::ALL,
        [
            reviewer(
                1,
                &[
                    finding("high", "a is not done", "todo_a();"),
                    finding("high", "b is not done", "todo_b();"),
                ],
            ),
            fixer("is not done", &[edit("src/a.rs"), edit("src/b.rs")], &[fixed("F1"), fixed("F2")]),
            reviewer(2, &[]),
        ],
    );
    bench.settle("tasks: {", "tasks: {max_concurrent_fixers: 1, ");
    for file in ["src/a.rs", "src/b.rs"] {
        bench.sandbox.write(file, BEFORE);
    }
    git(&bench, &["init", "-q", "-b", "main"]);
    git(&bench, &["add", "-A"]);
    git(&bench, &["commit", "-q", "-m", "x"]);
    let after = |name: &str| BEFORE.replace("two", name);
    bench.sandbox.write("src/a.rs", &after("todo_a"));
    bench.sandbox.write("src/b.rs", &after("todo_b"));

    bench.expect(&["review", "--work-tree", "--level", "dual", "--tier", "2"], 0);
    assert_eq!(bench.findings(), ["F1 fixed", "F2 fixed"]);
    assert_eq!(bench.sandbox.read("src/a.rs"), after("done_a"));
    assert_eq!(bench.sandbox.read("src/b.rs"), after("done_b"));
    assert_eq!(bench.unscripted(), [""; 0]);
}
