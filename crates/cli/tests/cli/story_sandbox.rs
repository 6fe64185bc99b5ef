//! A BMAD project in a git repository, with a shell script as the agent that writes and develops stories.

use std::{fs, path::PathBuf};

use crate::{
    common::{Sandbox, scripted_agent_path},
    loop_sandbox::{commit_all, run_git},
};

/// A review that finds something critical in the first round, which a fixer repairs.
pub(crate) const CRITICAL_REVIEW: &str = "tasks:
  - task: 'round-1/review/*'
    steps:
      - findings:
          - {severity: critical, category: bug, description: only the letter b is removed, quote: tr -d b}
          - {severity: low, category: style, description: the name sift is vague, quote: 'sift() {'}
  - task: '*/fix/*'
    fix: [{match: tr -d b, replace: tr -d b, with: tr -d bran, description: done}]
  - task: '*'
    steps: [{findings: []}]
";
/// A review that finds something critical in every round, which no fixer repairs.
pub(crate) const ENDLESS_REVIEW: &str = "tasks:
  - task: '*/review/*'
    steps: [{findings: [{severity: critical, category: bug, description: only the letter b is removed, quote: tr -d b}]}]
  - task: '*/fix/*'
    fix: [{match: tr -d b, blocked: this cannot be repaired}]
  - task: '*'
    steps: [{findings: []}]
";
pub(crate) const BOARD: &str = "_bmad-output/implementation-artifacts/sprint-status.yaml";
pub(crate) const STORY: &str = "_bmad-output/implementation-artifacts/1-2-sift.md";

const BOARD_TEXT: &str = "# keep this comment
project: mill
development_status:
  epic-1: in-progress
  1-1-grind: done
  1-2-sift: ready-for-dev
  1-3-pack: backlog
  epic-1-retrospective: optional
";

const STORY_TEXT: &str = "# Story 1.2: Sift the flour

Status: ready-for-dev

## Story

As a miller, I want to sift.

## Acceptance Criteria

1. Bran is removed.
2. Flour is kept.

## Tasks / Subtasks

- [ ] Write sift (AC: 1, 2)
- [ ] Write tests (AC: 1, 2)

## Dev Agent Record

### Completion Notes List

### File List
";

/// Reads the prompt into `$prompt`, keeps it, and hands the tasks of reviews to the scripted agent. `$n` is the number of the
/// session, from the name of its task: a session that was killed and is repeated then does the same again.
const AGENT_HEAD: &str = "prompt=$(cat)
echo \"$TRIBUNAL_RUN $TRIBUNAL_TASK\" >> CALLS
case $TRIBUNAL_TASK in
develop-*|create-*|code-review-*) ;;
*) printf '%s' \"$prompt\" | SCRIPTED_AGENT REVIEW_SCRIPT; exit $? ;;
esac
step=${TRIBUNAL_TASK%%/*}
n=${step##*-}
printf '%s' \"$prompt\" > PROMPTS/$step
story=STORY_PATH
# Does everything as it should be done.
develop() {
  mkdir -p src tests
  echo 'sift() { tr -d b; }' > src/sift.sh
  printf '# AC1, AC2\\n. ./src/sift.sh\\n' > tests/sift_test.sh
  sed -i 's/- \\[ \\]/- [x]/; s/^Status: .*/Status: review/' $story
  # A session that was killed is repeated.
  grep -q '^- src/sift.sh' $story || printf '%s\\n' '- src/sift.sh' '- tests/sift_test.sh' >> $story
  echo 'Sifting works.'
}
";

/// Creates the project. `agent_script` is what the agent does in its session; it has `$step`, `$n`, `$story` and `develop`.
pub(crate) fn story_sandbox(agent_script: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path_of("../prompts")).unwrap();
    fs::create_dir_all(sandbox.home_dir()).unwrap();
    write_story_agent(&sandbox, agent_script);
    write_review(&sandbox, "tasks: [{task: '*', steps: [{findings: []}]}]\n");
    sandbox.write_file(
        "tribunal.yaml",
        &format!(
            "tier: 0\nagents: {{use: [worker, other], worker: {{driver: command, argv: [sh, {0:?}]}}, \
             other: {{driver: command, argv: [sh, {0:?}]}}}}\ntasks: {{retry_after: 0}}\nchecks: [\"sh check.sh\"]\n",
            agent_path(&sandbox)
        ),
    );
    sandbox
        .write_file("_bmad/_config/manifest.yaml", "installation:\n  version: 6.10.0\nmodules:\n  - core\n  - bmm\n");
    for skill in ["dev-story", "create-story", "code-review"] {
        sandbox.write_file(&format!(".claude/skills/bmad-{skill}/SKILL.md"), "---\nname: x\n---\nDo it.\n");
    }
    sandbox.write_file(BOARD, BOARD_TEXT);
    sandbox.write_file(STORY, STORY_TEXT);
    sandbox.write_file("src/mill.sh", "grind() { cat; }\n");
    sandbox.write_file("check.sh", "for file in src/*.sh; do sh -n $file || exit 1; done\n! grep -rn broken src\n");
    run_git(&sandbox, &["init", "-q", "-b", "main"]);
    run_git(&sandbox, &["config", "user.name", "n"]);
    run_git(&sandbox, &["config", "user.email", "e@e"]);
    run_git(&sandbox, &["config", "commit.gpgSign", "false"]);
    // The settings name the sandbox; without them all sandboxes have the same trees.
    sandbox.write_file(".git/info/exclude", "/tribunal.yaml\n");
    commit_all(&sandbox, "Begin");
    sandbox
}

fn agent_path(sandbox: &Sandbox) -> PathBuf {
    sandbox.path_of("../agent.sh")
}

/// Replaces what the agent does in a session.
pub(crate) fn write_story_agent(sandbox: &Sandbox, agent_script: &str) {
    let quoted = |path: PathBuf| format!("'{}'", path.display());
    let head = AGENT_HEAD
        .replace("CALLS", &quoted(sandbox.path_of("../calls")))
        .replace("SCRIPTED_AGENT", &quoted(scripted_agent_path()))
        .replace("REVIEW_SCRIPT", &quoted(sandbox.path_of("../review.yaml")))
        .replace("PROMPTS", &quoted(sandbox.path_of("../prompts")))
        .replace("STORY_PATH", STORY);
    fs::write(agent_path(sandbox), format!("{head}{agent_script}")).unwrap();
}

/// Replaces what the reviewers and fixers say and do.
pub(crate) fn write_review(sandbox: &Sandbox, script: &str) {
    sandbox.write_file("../review.yaml", script);
}

/// Returns the prompt of a session: `develop-1`.
pub(crate) fn session_prompt(sandbox: &Sandbox, session: &str) -> String {
    fs::read_to_string(sandbox.path_of("../prompts").join(session)).unwrap()
}
