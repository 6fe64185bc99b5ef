//! What a client sees of the user's and the project's settings beside its task: no hooks, no servers, nothing that
//! was not configured.

use std::path::Path;

use serde_json::json;
use tribunal_testkit::model::{
    Call, Rule, Step, When,
    parts::{finding, findings_of, fixing, reviewer},
};

use crate::common::{Bench, Client, VAGUE, helper, with_each_client};

with_each_client!(
    hooks_do_not_run,
    the_person_s_own_servers_are_not_offered,
    what_the_person_allows_themselves_is_not_allowed_to_agents,
    a_server_that_was_set_can_be_used,
);

/// Writes hooks of the user and of the project that leave a file behind when a turn ends.
fn write_hooks(bench: &Bench, client: Client) -> [std::path::PathBuf; 2] {
    let marks = ["person", "project"].map(|whose| bench.sandbox.home().join(format!("{whose}-hook-ran")));
    let hooks = |mark: &Path| {
        let command = format!("touch '{}'", mark.display());
        json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command, "timeout": 20}]}]}})
            .to_string()
    };
    let (person, project) = match client {
        Client::Claude => ("../home/claude/settings.json", ".claude/settings.json"),
        Client::Codex => ("../home/codex/hooks.json", ".codex/hooks.json"),
    };
    bench.sandbox.write(person, &hooks(&marks[0]));
    bench.sandbox.write(project, &hooks(&marks[1]));
    marks
}

fn hooks_do_not_run(client: Client) {
    let bench = Bench::new(
        &[client],
        [reviewer(1, &[finding("high", "vague", VAGUE)]), Rule::on("hello", [Step::text("x")])],
    );
    bench.settle("agents: {", "agents: {claude-code: {inherit: project}, codex: {inherit: project}, ");
    let [person, project] = write_hooks(&bench, client);
    bench.look();
    assert!(!person.exists() && !project.exists());

    // The same hooks do run outside of a review, so the check above means something.
    let mut alone = bench.client(client);
    match client {
        Client::Claude => alone.args(["-p", "hello"]),
        Client::Codex => {
            alone.args(["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "hello"])
        }
    };
    let ran = alone.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(person.exists(), "the hook of this test is no hook");
}

/// Builds a call of the echo tool of the server with this name.
fn echo(client: Client, server: &str) -> Call {
    let name = match client {
        Client::Claude => format!("mcp__{server}__echo"),
        Client::Codex => "echo".to_string(),
    };
    Call::Tool { name, input: json!({"words": "hello"}) }
}

fn the_person_s_own_servers_are_not_offered(client: Client) {
    let bench = Bench::new(
        &[client],
        [reviewer(1, &[finding("high", "vague", VAGUE)]), Rule::on("by hand", [Step::text("done")])],
    );
    let program = helper("mcp-echo");
    match client {
        Client::Claude => {
            let settings = json!({"mcpServers": {"mine": {"type": "stdio", "command": program, "args": []}}});
            bench.sandbox.write("../home/claude/.claude.json", &settings.to_string());
        }
        Client::Codex => {
            let file = "../home/codex/config.toml";
            let server = format!("[mcp_servers.mine]\ncommand = {program:?}\n");
            bench.sandbox.write(file, &format!("{}\n{server}", bench.sandbox.read(file)));
        }
    }
    bench.look();
    // The user's own client has the server.
    let mut alone = bench.client(client);
    match client {
        Client::Claude => alone.args(["-p", "by hand"]),
        Client::Codex => alone.args(["exec", "--skip-git-repo-check", "by hand"]),
    };
    assert!(alone.output().unwrap().status.success());
    let requests = bench.server.tally().requests;
    let offered: Vec<bool> =
        requests.iter().map(|asked| asked.body.to_string().contains("mcp__mine")).collect();
    assert_eq!(offered, [false, true]);
}

fn a_server_that_was_set_can_be_used(client: Client) {
    let when = When { last: Some("You are one reviewer".into()), ..When::default() };
    let found = findings_of(&[finding("high", "fast is vague", VAGUE)]);
    let bench = Bench::new(
        &[client],
        [Rule::when(when, [Step::calls([echo(client, "echo")]), Step::structured(found)])],
    );
    bench.sandbox.set(&format!("mcp: {{echo: {{argv: [{:?}]}}}}", helper("mcp-echo")));
    bench.look();
    let tally = bench.server.tally();
    assert!(tally.requests[1].results.join(" ").contains("echo: hello"), "{:?}", tally.requests[1].results);
}

/// Gives permissions for the user's own work in this directory, which is outside of any copy.
fn allow_outside(bench: &Bench, client: Client, outside: &Path) {
    match client {
        Client::Claude => {
            let permissions = json!({
                "additionalDirectories": [outside],
                "allow": ["Edit", "Write", "Bash"],
                "defaultMode": "acceptEdits",
            });
            let settings = json!({ "permissions": permissions }).to_string();
            bench.sandbox.write("../home/claude/settings.json", &settings);
        }
        Client::Codex => {
            let rules = "prefix_rule(pattern=[\"touch\"], decision=\"allow\")\n";
            bench.sandbox.write("../home/codex/rules/default.rules", rules);
            let file = "../home/codex/config.toml";
            let roots = format!("[sandbox_workspace_write]\nwritable_roots = [{outside:?}]\n");
            bench.sandbox.write(file, &format!("{}\n{roots}", bench.sandbox.read(file)));
        }
    }
}

fn what_the_person_allows_themselves_is_not_allowed_to_agents(client: Client) {
    let outside = tempfile::tempdir().unwrap();
    let made = outside.path().join("made.md").display().to_string();
    let secret = outside.path().join("secret.md");
    std::fs::write(&secret, "nobody may read this").unwrap();
    let read = Call::Tool { name: "Read".into(), input: json!({ "file_path": secret }) };
    let write = || match client {
        Client::Claude => {
            Call::Tool { name: "Write".into(), input: json!({"file_path": made, "content": "x"}) }
        }
        Client::Codex => Call::Shell(format!("touch {made}")),
    };
    let found = Step::structured(findings_of(&[finding("high", "fast is vague", VAGUE)]));
    let gave_up = json!({"id": "F1", "status": "BLOCKED", "fix_description": "x", "files_modified": []});
    let blocked = Step::structured(json!({ "fixes": [gave_up] }));
    let bench = Bench::new(
        &[client],
        [
            Rule::on("You are one reviewer", [Step::calls([write()]), found]),
            Rule::when(fixing("fast is vague"), [Step::calls([write(), read]), blocked]),
            Rule::on("by hand", [Step::calls([write()]), Step::text("done")]),
        ],
    );
    allow_outside(&bench, client, outside.path());
    bench.expect(&["review", "plan.md"], 3);
    let tried = bench.server.tally().requests.iter().filter(|request| request.rounds == 1).count();
    assert_eq!(tried, 2, "a reviewer and a fixer");
    assert!(!Path::new(&made).exists());
    let tally = bench.server.tally();
    let told = tally.requests.iter().flat_map(|request| &request.results);
    assert!(
        told.clone().all(|words| !words.contains("nobody may read this")),
        "{:?}",
        told.collect::<Vec<_>>()
    );

    // The user's own client may write there.
    let mut alone = bench.client(client);
    match client {
        Client::Claude => alone.args(["-p", "by hand"]),
        Client::Codex => alone.args(["exec", "--skip-git-repo-check", "-s", "read-only", "by hand"]),
    };
    assert!(alone.output().unwrap().status.success());
    assert!(Path::new(&made).exists(), "what this test allows is allowed to nobody");
}
