//! The doctor and a review agree: in every world, broken or not, the doctor says ready exactly if a review starts a run.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::Command,
};

use crate::common::{CommandOutput, Sandbox, write_program};

const GOOD_AGENT: &str = "#!/bin/sh\ncat >/dev/null\necho 'findings: []'\n";
const SIGNED_IN_CODEX: &str =
    "#!/bin/sh\ncase \"$1\" in\n--version) echo codex-cli 0.166.0;;\nlogin) echo Logged in using ChatGPT >&2;;\nesac\n";
const SIGNED_OUT_CODEX: &str =
    "#!/bin/sh\ncase \"$1\" in\n--version) echo codex-cli 0.166.0;;\nlogin) echo Not logged in >&2; exit 1;;\nesac\n";

/// A project with one agent that is ready, and a directory of programs that comes first on the search path.
struct World {
    sandbox: Sandbox,
    variables: Vec<(&'static str, String)>,
}

impl World {
    fn new() -> World {
        let sandbox = Sandbox::with_script("");
        let world = World { sandbox, variables: Vec::new() };
        fs::create_dir_all(world.sandbox.home_dir().join("bin")).unwrap();
        world.set_agent("agent");
        write_program(&world.sandbox.path_of("agent"), GOOD_AGENT);
        world
    }

    /// Makes a file of the project the program of the only agent.
    fn set_agent(&self, program: &str) {
        let program_path = self.sandbox.path_of(program);
        self.sandbox.write_file(
            "tribunal.yaml",
            &format!(
                "tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: [{program_path:?}]}}}}\n\
                 tasks: {{retry_after: 0, required_issues: 0}}\n"
            ),
        );
    }

    /// Puts a program on the search path.
    fn add_program(&self, program_name: &str, program_text: &str) {
        write_program(&self.sandbox.home_dir().join("bin").join(program_name), program_text);
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        let mut command: Command = self.sandbox.tribunal_command(arguments);
        let search_path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{search_path}", self.sandbox.home_dir().join("bin").display()));
        for key_variable in ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY", "CODEX_API_KEY"] {
            command.env_remove(key_variable);
        }
        command.envs(self.variables.iter().map(|(name, value)| (*name, value.as_str())));
        CommandOutput::from_output(command.output().unwrap())
    }

    fn count_runs(&self) -> usize {
        self.sandbox.run_ids().len()
    }

    /// Asserts that the doctor says ready if and only if a review starts a run, and that both are as expected.
    fn assert_agreement(&self, world_name: &str, is_ready: bool, is_trusted: bool) {
        if is_trusted {
            self.run(&["trust", "--yes"]);
        }
        let runs_before = self.count_runs();
        let doctor = self.run(&["doctor", "--timeout", "60"]);
        let report = format!("{world_name}: {}{}", doctor.stdout, doctor.stderr);
        assert_eq!(self.count_runs(), runs_before, "{report}");
        assert_eq!(doctor.exit_code, Some(if is_ready { 0 } else { 5 }), "{report}");
        assert_eq!(doctor.stdout.contains("\nready: a review can run here\n"), is_ready, "{report}");
        let review = self.run(&["review", "plan.md"]);
        let has_started = self.count_runs() > runs_before || review.stderr.contains("review of plan.md");
        assert_eq!(has_started, is_ready, "{report}\n{}", review.stderr);
        if !is_ready {
            // Usage and settings are exit code 2, the environment is 5; both come with something to do.
            assert!(matches!(review.exit_code, Some(2 | 5)), "{world_name}: {:?}", review.exit_code);
            assert!(
                review.stderr.contains("  help: ") || review.stderr.contains("  1. "),
                "{world_name}: {}",
                review.stderr
            );
        }
    }
}

/// Builds a world, changes it, and asserts that doctor and review agree about it.
fn assert_agreement(world_name: &str, is_ready: bool, change: impl FnOnce(&mut World)) {
    let mut world = World::new();
    change(&mut world);
    world.assert_agreement(world_name, is_ready, true);
}

fn set_mode(path: &Path, file_mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(file_mode)).unwrap();
}

#[test]
fn doctor_and_review_agree_about_agents() {
    assert_agreement("healthy", true, |_| {});
    assert_agreement("missing program", false, |world| fs::remove_file(world.sandbox.path_of("agent")).unwrap());
    assert_agreement("not executable", false, |world| set_mode(&world.sandbox.path_of("agent"), 0o644));
    assert_agreement("a directory", false, |world| {
        fs::create_dir(world.sandbox.path_of("tools")).unwrap();
        world.set_agent("tools");
    });
    assert_agreement("missing interpreter", false, |world| {
        write_program(&world.sandbox.path_of("agent"), "#!/opt/none/python3\n");
    });
    assert_agreement("not on the path", false, |world| {
        world.sandbox.write_file("tribunal.yaml", "agents: {mine: {driver: command, argv: [surely-not-installed]}}\n");
    });
    assert_agreement("a command line as a program", false, |world| {
        world.sandbox.write_file("tribunal.yaml", "agents: {mine: {driver: command, argv: ['sh agent']}}\n");
    });
    assert_agreement("one of two agents", true, |world| {
        let agent_path = world.sandbox.path_of("agent");
        world.sandbox.write_file(
            "tribunal.yaml",
            &format!(
                "tier: 0\nagents:\n  use: [mine, other]\n  mine: {{driver: command, argv: [{agent_path:?}]}}\n  \
                 other: {{driver: command, argv: [surely-not-installed]}}\ntasks: {{required_issues: 0}}\n"
            ),
        );
    });
    assert_agreement("missing script", false, |world| {
        world.sandbox.write_file("tribunal.yaml", "agents: {mine: {driver: replay, script: none.yaml}}\n");
    });
}

#[test]
fn doctor_and_review_agree_about_clients() {
    let use_codex = |world: &World| world.sandbox.write_file("tribunal.yaml", "tier: 0\nagents: {use: [codex]}\n");
    assert_agreement("client that is too old", false, |world| {
        use_codex(world);
        world.add_program("codex", "#!/bin/sh\necho codex-cli 0.20.1\n");
    });
    assert_agreement("client that is signed out", false, |world| {
        use_codex(world);
        world.add_program("codex", SIGNED_OUT_CODEX);
    });
    assert_agreement("client that prints no version", false, |world| {
        use_codex(world);
        world.add_program("codex", "#!/bin/sh\nexit 1\n");
    });
    assert_agreement("client that is ready", true, |world| {
        use_codex(world);
        world.add_program("codex", SIGNED_IN_CODEX);
    });
    assert_agreement("client at a path that does not exist", false, |world| {
        world.sandbox.write_file("tribunal.yaml", "agents: {use: [codex], codex: {program: ./bin/codex}}\n");
    });
}

#[test]
fn doctor_and_review_agree_about_the_project() {
    assert_agreement(".tribunal is a file", false, |world| world.sandbox.write_file(".tribunal", ""));
    assert_agreement("the locks are a file", false, |world| world.sandbox.write_file(".tribunal/locks", ""));
    assert_agreement(".tribunal leads out", false, |world| {
        symlink(world.sandbox.home_dir(), world.sandbox.path_of(".tribunal")).unwrap();
    });
    assert_agreement("not a journal", false, |world| {
        world.sandbox.write_file(".tribunal/journal.db", "dear diary, this is long enough to be read as a header");
    });
    assert_agreement("an empty journal", true, |world| world.sandbox.write_file(".tribunal/journal.db", ""));
    assert_agreement("newer journal format", false, |world| {
        assert_eq!(world.run(&["review", "plan.md"]).exit_code, Some(0));
        // SQLite keeps the user's version number in four bytes of the header.
        let journal_path = world.sandbox.path_of(".tribunal/journal.db");
        let mut journal_bytes = fs::read(&journal_path).unwrap();
        journal_bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
        fs::write(&journal_path, journal_bytes).unwrap();
    });
    assert_agreement("a template that leads out", false, |world| {
        fs::create_dir_all(world.sandbox.path_of(".tribunal/templates")).unwrap();
        symlink("/nowhere.md", world.sandbox.path_of(".tribunal/templates/party.md")).unwrap();
    });
    assert_agreement("a template without a placeholder", false, |world| {
        world.sandbox.write_file(".tribunal/templates/party.md", "Have a party about\n{{subject}}\n");
    });
}

#[test]
fn doctor_and_review_agree_about_settings_trust_and_checks() {
    assert_agreement("broken settings", false, |world| world.sandbox.append_setting("level: huge"));
    assert_agreement("invalid YAML", false, |world| world.sandbox.write_file("tribunal.yaml", "tier: [\n"));
    assert_agreement("unknown agent", false, |world| {
        world.sandbox.write_file("tribunal.yaml", "agents: {use: [nobody]}\n");
    });
    assert_agreement("output outside the project", false, |world| {
        world.sandbox.append_setting("output_folder: ../out")
    });
    assert_agreement("check program missing", false, |world| {
        world.sandbox.append_setting("verify: [surely-not-installed --all]");
    });
    assert_agreement("check not executable", false, |world| {
        world.sandbox.write_file("check.sh", "#!/bin/sh\n");
        world.sandbox.append_setting("verify: [./check.sh]");
    });
    assert_agreement("a missing check that is not needed", true, |world| {
        world.sandbox.append_setting("fix: false\nverify: [surely-not-installed --all]");
    });
    assert_agreement("no temporary directory", true, |world| world.variables.push(("TMPDIR", "/nowhere".into())));
    let world = World { sandbox: World::new().sandbox.without_trust(), variables: Vec::new() };
    world.assert_agreement("untrusted commands", false, false);
}

#[test]
fn doctor_and_review_agree_about_directories_that_cannot_be_written() {
    // Permissions do not bind the superuser, who could write all the same.
    if rustix::process::geteuid().is_root() {
        return;
    }
    for (world_name, read_only_dir) in [("read-only project", "."), ("read-only .tribunal", ".tribunal")] {
        let world = World::new();
        world.run(&["trust", "--yes"]);
        fs::create_dir_all(world.sandbox.path_of(read_only_dir)).unwrap();
        set_mode(&world.sandbox.path_of(read_only_dir), 0o555);
        world.assert_agreement(world_name, false, true);
        set_mode(&world.sandbox.path_of(read_only_dir), 0o755);
    }
}

#[test]
fn each_problem_of_a_program_gets_its_own_hint() {
    let world = World::new();
    let agent_path = world.sandbox.path_of("agent");
    set_mode(&agent_path, 0o644);
    let review = world.run(&["review", "plan.md"]);
    assert!(
        review.stderr.contains(&format!("help: make it executable: `chmod +x {}`", agent_path.display())),
        "{}",
        review.stderr
    );
    let review = world.run(&["review", "plan.md", "--set", "agents.mine.argv=my agent --print"]);
    assert_eq!(review.exit_code, Some(2), "{}", review.stderr);
    assert!(review.stderr.contains("as a list: `[my, agent, --print]`"), "{}", review.stderr);
    assert_eq!(world.count_runs(), 0);
}

#[test]
fn a_run_whose_agent_is_gone_is_not_resumed() {
    let world = World::new();
    write_program(&world.sandbox.path_of("agent"), "#!/bin/sh\nexit 1\n");
    assert_eq!(world.run(&["review", "plan.md"]).exit_code, Some(5));
    let run_id = world.sandbox.last_run_id();
    fs::remove_file(world.sandbox.path_of("agent")).unwrap();
    let resume = world.run(&["resume"]);
    assert_eq!(resume.exit_code, Some(5), "{}", resume.stderr);
    assert!(resume.stderr.contains("agent` does not exist"), "{}", resume.stderr);
    assert!(resume.stderr.contains(&format!("`tribunal resume {run_id} --reload`")), "{}", resume.stderr);
    let resumed = world.sandbox.run_events(&["log", &run_id, "--kind", "run_resumed"]);
    assert!(resumed.is_empty(), "{resumed:?}");
}

#[test]
fn hooks_that_cannot_start_tribunal_are_reported() {
    let world = World::new();
    assert_eq!(world.run(&["init", "--client", "claude-code", "--yes"]).exit_code, Some(0));
    let hook_file = ".claude/settings.local.json";
    assert!(!world.run(&["doctor"]).stdout.contains("the hooks in"), "hooks of this very program can run");
    let own_program = fs::canonicalize(crate::common::TRIBUNAL).unwrap().display().to_string();
    let moved_hooks = world.sandbox.read_file(hook_file).replace(&own_program, "/opt/moved/tribunal");
    world.sandbox.write_file(hook_file, &moved_hooks);
    world.run(&["trust", "--yes"]);
    let doctor = world.run(&["doctor"]);
    assert!(
        doctor
            .stdout
            .contains(&format!("the hooks in {hook_file} cannot run: program `/opt/moved/tribunal` does not exist")),
        "{}",
        doctor.stdout
    );
    assert_eq!(doctor.exit_code, Some(0), "a review runs without hooks");
}
