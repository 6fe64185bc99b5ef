//! What a client sees of the person and the project beside its task: no hooks, no servers, nothing that was not set.

use serde_json::json;
use tribunal_testkit::model::{
    Call, Rule, Step, When,
    parts::{finding, findings_of, reviewer},
};

use crate::common::{Bench, Client, VAGUE, helper, with_each_client};

with_each_client!(
    hooks_do_not_run,
    the_person_s_own_servers_are_not_offered,
    a_server_that_was_set_can_be_used,
);

/// Hooks of the person and of the project that leave a file behind when a turn ends.
fn write_hooks(bench: &Bench, client: Client) -> [std::path::PathBuf; 2] {
    let marks = ["person", "project"].map(|whose| bench.sandbox.home().join(format!("{whose}-hook-ran")));
    let hooks = |mark: &std::path::Path| {
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

    // They would have run.
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

fn the_person_s_own_servers_are_not_offered(client: Client) {
    let bench = Bench::new(
        &[client],
        [reviewer(1, &[finding("high", "vague", VAGUE)]), Rule::on("hello", [Step::text("x")])],
    );
    let program = helper("mcp-echo");
    match client {
        Client::Claude => {
            let servers = json!({"mcpServers": {"mine": {"type": "stdio", "command": program, "args": []}}});
            bench.sandbox.write("../home/claude/.claude.json", &servers.to_string());
        }
        Client::Codex => {
            let file = "../home/codex/config.toml";
            let settings = bench.sandbox.read(file);
            bench.sandbox.write(file, &format!("{settings}\n[mcp_servers.mine]\ncommand = {program:?}\n"));
        }
    }
    bench.look();
    let mut alone = bench.client(client);
    match client {
        Client::Claude => alone.args(["-p", "hello"]),
        Client::Codex => alone.args(["exec", "--skip-git-repo-check", "hello"]),
    };
    assert!(alone.output().unwrap().status.success());
    let offered = |at: usize| bench.server.tally().requests[at].body.to_string().contains("mcp__mine");
    assert_eq!([offered(0), offered(1)], [false, true]);
}

fn a_server_that_was_set_can_be_used(client: Client) {
    let name = match client {
        Client::Claude => "mcp__echo__echo",
        Client::Codex => "echo",
    };
    let call = Call::Tool { name: name.into(), input: json!({"words": "hello"}) };
    let when = When { last: Some("You are one reviewer".into()), ..When::default() };
    let found = findings_of(&[finding("high", "fast is vague", VAGUE)]);
    let bench = Bench::new(&[client], [Rule::when(when, [Step::calls([call]), Step::structured(found)])]);
    bench.sandbox.set(&format!("mcp: {{echo: {{argv: [{:?}]}}}}", helper("mcp-echo")));
    bench.look();
    let tally = bench.server.tally();
    assert!(tally.requests[1].results.join(" ").contains("echo: hello"), "{:?}", tally.requests[1].results);
}
