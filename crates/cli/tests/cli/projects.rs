//! `tribunal inspect project` through the binary: projects of each era, a directory without BMAD, and broken files.

use crate::common::Sandbox;

const QUIET: &str = "tasks: [{task: '*', steps: [{findings: []}]}]\n";

/// Returns the report without its first line, which names the directory.
fn shown(sandbox: &Sandbox, args: &[&str]) -> String {
    let ran = sandbox.run(&[&["inspect", "project"], args].concat());
    let rest = ran.out.lines().skip(1).collect::<Vec<_>>().join("\n");
    format!("exit {}\n{rest}", ran.code.unwrap_or(-1))
}

#[test]
fn a_folder_without_bmad_has_little_to_say() {
    let sandbox = Sandbox::scripted(QUIET);
    insta::assert_snapshot!(shown(&sandbox, &[]));
}

#[test]
fn an_early_project_is_explained_with_a_tier_for_its_next_task() {
    let sandbox = Sandbox::scripted(QUIET);
    sandbox.write(
        "_bmad/_config/manifest.yaml",
        "installation:\n  version: 6.0.0-alpha.22\nmodules:\n  - core\n  - bmm\n",
    );
    sandbox.write("_bmad/bmm/workflows/workflow-status/workflow.yaml", "x: 1\n");
    sandbox.write(
        "_bmad/bmm/config.yaml",
        "output_folder: \"{project-root}/out\"\nplanning_artifacts: \"{project-root}/plans\"\n",
    );
    sandbox.write(".claude/commands/bmad/bmm/workflows/dev-story.md", "x\n");
    sandbox
        .write("_bmad/_config/agent-manifest.csv", "name,displayName,title,module\ndev,Ada,Developer,bmm\n");
    sandbox.write("plans/prd.md", "# PRD\n\nWords.\n");
    insta::assert_snapshot!(shown(&sandbox, &["--task", "Fix the typo"]));
}

#[test]
fn a_late_project_names_files_for_clients_without_commands() {
    let sandbox = Sandbox::scripted(QUIET);
    sandbox.write(
        "_bmad/_config/manifest.yaml",
        "installation:\n  version: 6.12.0\nmodules:\n  - {name: bmm, version: 6.12.0}\n",
    );
    sandbox.write(
        "_bmad/config.toml",
        "[core]\noutput_folder = \"out\"\n[agents.bmad-agent-dev]\nmodule = \"bmm\"\nname = \"Ada\"\n",
    );
    sandbox.write(".agents/skills/bmad-build-auto/SKILL.md", "x\n");
    sandbox.write("out/implementation-artifacts/sprint-status.yaml", "development_status:\n  1-1-a: done\n");
    insta::assert_snapshot!(shown(&sandbox, &["--for", "codex"]));
}

#[test]
fn what_is_broken_is_said_with_its_place_and_exit_3() {
    let sandbox = Sandbox::scripted(QUIET);
    sandbox.write("_bmad/_config/manifest.yaml", "installation:\n  version: 6.12.0\n");
    sandbox.write("_bmad/bmm/config.yaml", "output_folder: /srv/\u{1b}[2Jout\nplanning_artifacts: [a]\n");
    sandbox.write("_bmad/core/config.yaml", "a: [\n");
    insta::assert_snapshot!(shown(&sandbox, &[]));
}

#[test]
fn an_agent_is_meant_by_any_of_its_names_and_never_two_by_one() {
    let sandbox = Sandbox::new();
    sandbox.write("_bmad/_config/manifest.yaml", "installation:\n  version: 6.0.4\nmodules: []\n");
    sandbox.write(
        "_bmad/_config/agent-manifest.csv",
        "name,displayName,title,role,module\ndev,Amelia,Developer,r,bmm\ndev,Bo,Game Developer,r,gds\n",
    );
    let said = |name: &str| sandbox.run(&["inspect", "project", "--agent", name]);
    assert!(
        said("bmm:dev").out.contains("agent      bmm:dev (Amelia, Developer)"),
        "{}",
        said("bmm:dev").out
    );
    assert!(said("Bo").out.contains("agent      gds:dev (Bo, Game Developer)"));
    assert_eq!(said("dev").code, Some(2));
    assert!(said("dev").err.contains("it could be bmm:dev or gds:dev"), "{}", said("dev").err);
    assert!(said("Ameli").err.contains("did you mean `bmm:dev`?"), "{}", said("Ameli").err);
}
