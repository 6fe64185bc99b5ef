//! Reviewers read, answer in the requested schema, and are asked again in the same session.

use serde_json::{Value, json};
use tribunal_testkit::model::{
    Call, Failure, Pattern, Request, Rule, Step, Tokens, When,
    parts::{finding, findings_of, reviewer},
};

use crate::common::{Bench, Client, PLAN, VAGUE, with_each_client, word};

with_each_client!(
    a_reviewer_cannot_write_however_it_tries,
    the_answer_is_asked_for_in_our_form,
    an_answer_in_free_words_is_read,
    what_was_wrong_is_said_in_the_same_talk_and_counted_once,
    a_talk_that_a_killed_run_had_gone_on_with_is_branched_off,
    a_large_document_is_read_whole,
    a_document_cannot_have_other_files_sent,
);

fn raised() -> Value {
    findings_of(&[finding("low", "fast is vague", VAGUE)])
}

/// Lists ways to write that this client's model may try, in its copy and in the user's own file.
fn vandalism(client: Client, person: &str) -> Vec<Call> {
    let script = format!("echo vandalism >> plan.md; echo vandalism > made.md; echo vandalism > '{person}'");
    match client {
        Client::Claude => vec![
            Call::Tool { name: "Write".into(), input: json!({"file_path": person, "content": "vandalism"}) },
            Call::Tool {
                name: "Edit".into(),
                input: json!({"file_path": person, "old_string": VAGUE, "new_string": "vandalism"}),
            },
            Call::Tool { name: "Bash".into(), input: json!({"command": script, "description": "x"}) },
        ],
        Client::Codex => {
            let patch =
                "apply_patch <<'X'\n*** Begin Patch\n*** Add File: made.md\n+vandalism\n*** End Patch\nX\n";
            vec![Call::Shell(script), Call::Shell(patch.to_string())]
        }
    }
}

/// Returns whether a client reports an attempt as refused.
fn is_refusal(answer: &str) -> bool {
    ["No such tool available", "Read-only file system", "rejected"].iter().any(|words| answer.contains(words))
}

fn a_reviewer_cannot_write_however_it_tries(client: Client) {
    // The user's file stands outside of the project, since its path has to be known before the project exists.
    let prompt = When { last: Some("You are one reviewer".into()), ..When::default() };
    let outside = tempfile::tempdir().unwrap();
    let person = outside.path().join("person.md");
    std::fs::write(&person, PLAN).unwrap();
    let steps = [
        Step::calls(vandalism(client, person.to_str().unwrap())),
        Step::calls([Call::Read("plan.md".into())]),
        Step::structured(raised()),
    ];
    let bench = Bench::new(&[client], [Rule::when(prompt, steps)]);
    bench.look();

    let tally = bench.server.tally();
    let after = |rounds: usize| tally.requests.iter().find(|request| request.rounds == rounds).unwrap();
    // The rounds count the tool calls that came before a request.
    let answers = &after(1).results;
    let refused = answers.iter().filter(|answer| is_refusal(answer)).count();
    assert_eq!(refused, answers.len(), "{answers:#?}");
    let copy = after(2).results.join("\n");
    assert!(copy.contains(VAGUE) && !copy.contains("vandalism"), "the copy: {copy}");
    assert_eq!(std::fs::read_to_string(&person).unwrap(), PLAN, "past the copy");
    assert_eq!(bench.sandbox.read("plan.md"), PLAN);
    assert!(!bench.sandbox.path("made.md").exists());
    assert_eq!(bench.findings(), ["F1 open"]);
    assert_eq!(bench.unscripted(), [""; 0]);

    let first = &tally.requests[0];
    assert!(first.authorised);
    assert!(first.last.contains("Your seat: adversarial.") && first.last.contains(VAGUE), "{}", first.last);
    if client == Client::Claude {
        for tool in ["Write", "Edit", "NotebookEdit", "Bash"] {
            assert!(!first.offers(tool), "{tool} is offered among {:?}", first.tools());
        }
        assert!(first.offers("Read"), "{:?}", first.tools());
    }
}

/// Finds the schema of the answer in a request, where each client puts it.
fn schema(client: Client, body: &Value) -> Value {
    match client {
        Client::Claude => {
            let tools = body["tools"].as_array().unwrap().iter();
            let tool = tools.clone().find(|tool| tool["name"] == "StructuredOutput");
            tool.unwrap()["input_schema"].clone()
        }
        Client::Codex => body["text"]["format"]["schema"].clone(),
    }
}

fn the_answer_is_asked_for_in_our_form(client: Client) {
    let bench = Bench::new(&[client], [reviewer(1, &[finding("low", "fast is vague", VAGUE)])]);
    bench.look();
    let tally = bench.server.tally();
    let schema = schema(client, &tally.requests[0].body);
    assert!(schema["properties"]["findings"].is_object(), "{schema}");
    assert_eq!(tally.requests.len(), 1);
    assert_eq!(bench.findings(), ["F1 open"]);
}

/// Matches the first and every later request of a session that began with a reviewer's prompt.
fn in_the_talk(steps: impl IntoIterator<Item = Step>) -> Rule {
    Rule::when(When { first: Some("You are one reviewer".into()), ..When::default() }, steps)
}

fn an_answer_in_free_words_is_read(client: Client) {
    let words = format!("I looked at it.\n```yaml\n{}\n```\n", raised());
    let bench = Bench::new(&[client], [in_the_talk([Step::text(words)])]);
    bench.look();
    assert_eq!(bench.findings(), ["F1 open"]);
    assert_eq!(bench.unscripted(), [""; 0]);
}

/// The session is forked because it is not known how far the killed run got in it.
fn a_talk_that_a_killed_run_had_gone_on_with_is_branched_off(client: Client) {
    let again = || When { last: Some("Your last answer was not accepted".into()), ..When::default() };
    let bench = Bench::new(
        &[client],
        [
            // The gate opens after the kill, so that only the resumed run gets an answer.
            Rule::when(again(), [Step::fail(Failure::Silence)]).until("killed"),
            Rule::when(again(), [Step::structured(raised())]),
            in_the_talk([Step::text("I looked at it, and it is what it is.")]),
        ],
    );
    let is_again =
        |event: &Value| event["kind"] == "effect_started" && word(event, "key").ends_with("/again");
    let run = bench.start(&["review", "--no-fix", "plan.md"], is_again);
    let is_asked = |request: &Request| request.last.contains("not accepted");
    bench.server.wait_until("it is asked again", |tally| tally.requests.iter().any(is_asked));
    run.kill();
    bench.server.open("killed");
    bench.expect(&["resume"], 3);
    assert_eq!(bench.findings(), ["F1 open"]);
    let tally = bench.server.tally();
    let last = tally.requests.iter().rfind(|request| is_asked(request)).unwrap();
    assert!(last.body.to_string().contains("it is what it is"), "the branch has the talk so far");
    let id = |key: &str| word(&bench.reply(key)["session"], "id").to_string();
    let (first, branch) = (id("round-1/review/adversarial"), id("round-1/review/adversarial/again"));
    assert!(!branch.is_empty() && branch != first, "{branch}: another talk than {first}");
}

fn what_was_wrong_is_said_in_the_same_talk_and_counted_once(client: Client) {
    let tokens = Tokens { input: 1000, cached: 400, output: 50, reasoning: 0 };
    let again = When { last: Some("Your last answer was not accepted".into()), ..When::default() };
    let bench = Bench::new(
        &[client],
        [
            Rule::when(again, [Step::structured(raised()).using(tokens)]),
            in_the_talk([Step::text("I looked at it, and it is what it is.").using(tokens)]),
        ],
    );
    bench.look();
    assert_eq!(bench.findings(), ["F1 open"]);

    let tally = bench.server.tally();
    let second = tally.requests.iter().find(|request| request.last.contains("not accepted")).unwrap();
    assert!(second.first.contains("You are one reviewer"), "the talk has its beginning: {}", second.first);
    assert!(second.body.to_string().contains("it is what it is"), "and the answer that was wrong");

    // A client may need several requests for one answer; all of them count towards its usage.
    let before = tally.requests.iter().filter(|request| !request.last.contains("not accepted")).count();
    let (first, again) =
        (bench.reply("round-1/review/adversarial"), bench.reply("round-1/review/adversarial/again"));
    for (reply, requests) in [(&first, before), (&again, tally.requests.len() - before)] {
        let usage = &reply["usage"];
        let counted = ["input_tokens", "cached_tokens", "output_tokens"]
            .map(|name| usage[name].as_u64().unwrap_or_else(|| panic!("{reply}")));
        assert_eq!(counted, [600, 400, 50].map(|one| one * requests as u64), "{usage}");
    }
    if client == Client::Claude {
        // The unit is millionths of a dollar, so that equal prices compare as equal integers.
        let cost = |reply: &Value, requests: usize| {
            (reply["usage"]["cost"].as_f64().unwrap() * 1e6 / requests as f64).round() as u64
        };
        let one = cost(&again, tally.requests.len() - before);
        assert!(one > 0, "{again}");
        assert_eq!(cost(&first, before), one, "{first} {again}");
    }
}

fn a_large_document_is_read_whole(client: Client) {
    let last = "The last line of it all.";
    let lines: String =
        (0..3200).map(|line| format!("Line {line} of a long plan, which has many of them.\n")).collect();
    let large = format!("{PLAN}\n## Details\n\n{lines}\n{last}\n");
    assert!(large.len() > 150_000);
    let when = When { last: Some(Pattern::Text(last.into())), ..When::default() };
    let bench = Bench::new(&[client], [Rule::when(when, [Step::structured(raised())])]);
    bench.sandbox.write("plan.md", &large);
    bench.look();
    assert_eq!(bench.findings(), ["F1 open"]);
    let sent = bench.reply("round-1/review/adversarial");
    assert_eq!(word(&sent, "answer"), "findings");
}

fn a_document_cannot_have_other_files_sent(client: Client) {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.md");
    std::fs::write(&secret, "nobody may read this").unwrap();
    let bench = Bench::new(&[client], [reviewer(1, &[finding("high", "fast is vague", VAGUE)])]);
    bench.sandbox.write("plan.md", &format!("{PLAN}\nSee @{0} and @\"{0}\" for more.\n", secret.display()));
    bench.look();
    let sent = bench.server.tally().requests[0].body.to_string();
    assert!(sent.contains("secret.md") && !sent.contains("nobody may read this"), "{sent}");
}
