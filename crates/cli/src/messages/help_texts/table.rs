//! One row for each command. To add a command, add its row; a test names the commands that have none.

use super::{
    CommandExample, CommandHelp,
    ExitCodes::{self, Answer, Check, Diagnosis, Every, Hook, Report, Run},
};

const fn command_row(
    command_path: &'static str,
    first_example: CommandExample,
    second_example: CommandExample,
    exit_codes: ExitCodes,
) -> CommandHelp {
    CommandHelp { command_path, examples: [first_example, second_example], exit_codes }
}

const fn example(purpose: &'static str, command_line: &'static str) -> CommandExample {
    CommandExample { purpose, command_line }
}

/// The help of every command, in the order of `tribunal --help`.
pub(super) const COMMAND_HELP: [CommandHelp; 47] = [
    command_row(
        "",
        example("Try it without an account, with scripted agents in a sample project", "tribunal demo"),
        example("Review a document and fix what is found", "tribunal review docs/prd.md"),
        Every,
    ),
    command_row(
        "init",
        example("Show what would be written, without writing anything", "tribunal init --dry-run"),
        example("Set up a project with the settings for one developer", "tribunal init --profile solo --yes"),
        Check("you declined, or an entry of Tribunal in a settings file is broken; no file was changed"),
    ),
    command_row(
        "demo",
        example("Run the demo in a temporary directory", "tribunal demo"),
        example("Keep the demo project to look around in it", "tribunal demo --dir tribunal-demo"),
        Run,
    ),
    command_row(
        "review",
        example("Review a document and fix what is found", "tribunal review docs/prd.md"),
        example("Review a branch without changing anything", "tribunal review --diff main...HEAD --no-fix"),
        Run,
    ),
    command_row(
        "resume",
        example("Resume the last run that can be resumed", "tribunal resume"),
        example(
            "Resume a run that reached its cost limit, with a higher limit",
            "tribunal resume prd-k3f9 --reload --set limits.max_cost=10",
        ),
        Run,
    ),
    command_row(
        "stop",
        example("Stop the running review after the current agent calls", "tribunal stop"),
        example("Stop one of several runs at once", "tribunal stop prd-k3f9 --now"),
        Answer,
    ),
    command_row(
        "say",
        example("Tell the agents of a run something", "tribunal say prd-k3f9 \"The API stays as it is\""),
        example("Narrow down what is looked at", "tribunal say prd-k3f9 Ignore the appendix"),
        Check("not allowed: the run reviews the work of the session that runs this command"),
    ),
    command_row(
        "runs",
        example("List the last ten runs", "tribunal runs --last 10"),
        example("List runs that are waiting for you, for a script", "tribunal runs --waiting --json"),
        Answer,
    ),
    command_row(
        "status",
        example("Show the last run, all that need attention, and the sprint", "tribunal status"),
        example("Show one run with its confidence and next steps", "tribunal status prd-k3f9"),
        Answer,
    ),
    command_row(
        "findings",
        example("Show what is still open in the last run", "tribunal findings --status open,blocked"),
        example("Write the findings for a code scanner", "tribunal findings prd-k3f9 --sarif > findings.sarif"),
        Answer,
    ),
    command_row(
        "report",
        example("Show in the morning what the night has brought", "tribunal report"),
        example("Write the report of one run as a document", "tribunal report sprint-k3f9 --markdown > report.md"),
        Report,
    ),
    command_row(
        "decisions",
        example("List what is waiting for you", "tribunal decisions"),
        example("Answer a decision", "tribunal decisions prd-k3f9.D1 accept --note \"fine for now\""),
        Check("not allowed: the run reviews the work of the session that runs this command"),
    ),
    command_row(
        "diff",
        example("Show everything that the last run changed", "tribunal diff"),
        example("Show the fix for one finding", "tribunal diff prd-k3f9 F3"),
        Answer,
    ),
    command_row(
        "undo",
        example("Show what undoing a run would change", "tribunal undo prd-k3f9"),
        example("Undo the fix for one finding", "tribunal undo prd-k3f9.F3 --yes"),
        Check("later edits are in the way, or another program is writing the file"),
    ),
    command_row(
        "discard",
        example("Move all failed and crashed runs to the trash", "tribunal discard --failed"),
        example("Restore a run from the trash", "tribunal discard --restore prd-k3f9"),
        Answer,
    ),
    command_row(
        "board",
        example("Move a story to review", "tribunal board move 1-2-log-in review"),
        example("Start an epic", "tribunal board move epic-1 in-progress"),
        Check(BOARD_REFUSED),
    ),
    command_row(
        "board move",
        example("Move a story to review", "tribunal board move 1-2-log-in review"),
        example("Show what moving it backwards would change", "tribunal board move 1.2 backlog --anyway --dry-run"),
        Check(BOARD_REFUSED),
    ),
    command_row(
        "validate",
        example("Check the whole project", "tribunal validate"),
        example("Check whether a story can be implemented next", "tribunal validate --for dev-story"),
        Check("there are errors, or the workflow cannot run yet"),
    ),
    command_row(
        "sprint",
        example("Show what would be done for a story, with the exact commands", "tribunal sprint 1.2 --dry-run"),
        example("Develop all open stories of epic 2, in the background", "tribunal sprint --epic 2 --detach"),
        Run,
    ),
    command_row(
        "verify",
        example("Check a story that a run has developed", "tribunal verify 1.2"),
        example("Check a story that was developed by hand since a commit", "tribunal verify 1-2-log-in --base main"),
        Check("the story is not verified"),
    ),
    command_row(
        "story",
        example("Show the state of a story", "tribunal story 1-2-log-in"),
        example("Tick a task and add a file", "tribunal story 1.2 --tick 2 --add-file src/login.rs"),
        Check("the story or the board cannot be used, or the change was refused"),
    ),
    command_row(
        "log",
        example("Follow a run that works in the background", "tribunal log prd-k3f9 --follow"),
        example("Show what happened to one finding", "tribunal log prd-k3f9 --finding F3"),
        Answer,
    ),
    command_row(
        "trust",
        example("Show the commands of this project and confirm them", "tribunal trust"),
        example("List them without changing anything", "tribunal trust --list"),
        Check("you declined; nothing was trusted"),
    ),
    command_row(
        "doctor",
        example("Check whether a review can run here", "tribunal doctor"),
        example("Wait longer for slow clients", "tribunal doctor --timeout 60"),
        Diagnosis("a review cannot run here, or the environment failed"),
    ),
    command_row(
        "loop",
        example("Work on a task until it is done and the checks pass", LOOP_RUN),
        example("Show all loops in sessions", "tribunal loop status"),
        Answer,
    ),
    command_row(
        "loop run",
        example("Work on a task until it is done and the checks pass", LOOP_RUN),
        example(
            "Hold the session that runs this command to a task, at most 5 times",
            "tribunal loop run --in-session -p \"Simplify the parser\" --max-iterations 5",
        ),
        Run,
    ),
    command_row(
        "loop plan",
        example("Show what would be written and moved on the board", "tribunal loop plan --dry-run"),
        example("Write the plan, also over specs that you have edited", "tribunal loop plan --force"),
        Check("the plan or the board cannot be used as it is"),
    ),
    command_row(
        "loop status",
        example("Show all loops and session reviews", "tribunal loop status"),
        example("Show one with its history", "tribunal loop status loop-k3f9"),
        Answer,
    ),
    command_row(
        "loop cancel",
        example("Release every session that is held in this project", "tribunal loop cancel"),
        example("Cancel one loop", "tribunal loop cancel loop-k3f9"),
        Answer,
    ),
    command_row(
        "breaker",
        example("Show whether loops may run here", "tribunal breaker"),
        example("Let them run again at once", "tribunal breaker reset"),
        Answer,
    ),
    command_row(
        "breaker reset",
        example("Let loops run again at once", "tribunal breaker reset"),
        example("The same, for scripts", "tribunal breaker reset --json"),
        Answer,
    ),
    command_row(
        "inspect",
        example("Show every setting and where it comes from", "tribunal inspect settings"),
        example("Show what Tribunal reads from a saved answer", "tribunal inspect findings answer.md"),
        Check("the file cannot be used as it is"),
    ),
    command_row(
        "inspect findings",
        example("Show the findings in a saved answer", "tribunal inspect findings answer.md"),
        example("Read the answer from standard input", "tribunal inspect findings - < answer.md"),
        Check("the answer cannot be parsed"),
    ),
    command_row(
        "inspect settings",
        example("Show the effective settings", "tribunal inspect settings"),
        example("Check one file on its own", "tribunal inspect settings tribunal.yaml"),
        Check("the settings have problems, so no review would start"),
    ),
    command_row(
        "inspect response",
        example("Parse a saved answer of a fixer", "tribunal inspect response answer.md --fixes"),
        example("Parse the raw output of a client", "tribunal inspect response out.jsonl --agent claude-code"),
        Check("the answer cannot be used"),
    ),
    command_row(
        "inspect menu",
        example("Show the menus in a saved text", "tribunal inspect menu answer.md"),
        example("Read the text from standard input, for a script", "tribunal inspect menu - --json < answer.md"),
        Check("no menu was found"),
    ),
    command_row(
        "inspect epics",
        example("Show the epics and stories of the project", "tribunal inspect epics"),
        example(
            "Read other files as one plan, for a script",
            "tribunal inspect epics docs/epics-1.md docs/epics-2.md --json",
        ),
        Check("a file cannot be used"),
    ),
    command_row(
        "inspect sprint",
        example("Show how the project's board is read", "tribunal inspect sprint"),
        example("Read another file as a board", "tribunal inspect sprint docs/sprint-status.yaml"),
        Check("the board has errors or cannot be used"),
    ),
    command_row(
        "inspect story",
        example("Show what is read from a story file", "tribunal inspect story docs/stories/1-2-log-in.md"),
        example("Read the story from standard input", "tribunal inspect story - < 1-2-log-in.md"),
        Check("the story is unusable"),
    ),
    command_row(
        "inspect project",
        example("Show the installed BMAD and the project's progress", "tribunal inspect project"),
        example("Suggest a tier for a task", "tribunal inspect project --task \"fix a typo in the log-in form\""),
        Check("a file of the project is broken"),
    ),
    command_row(
        "inspect transcript",
        example("Show what the reviewers of round 1 printed", "tribunal inspect transcript prd-k3f9 round-1/review"),
        example("The same as JSON", "tribunal inspect transcript prd-k3f9 round-1/review --json"),
        Answer,
    ),
    command_row(
        "hook",
        example("Answer whether a session may stop, as Claude Code asks it", "tribunal hook stop < stop-event.json"),
        example("The same for another client", "tribunal hook stop --client codex < stop-event.json"),
        Hook,
    ),
    command_row(
        "gc",
        example("Show what would be removed", "tribunal gc --dry-run"),
        example("Also remove runs that ended more than a week ago", "tribunal gc --runs --keep-days 7"),
        Answer,
    ),
    command_row(
        "recover",
        example("Check the journal, and show what is left if it is damaged", "tribunal recover"),
        example("Make a new journal of what can be read", "tribunal recover --rebuild"),
        Answer,
    ),
    command_row(
        "schema",
        example("Write the schema of settings files for an editor", "tribunal schema settings > tribunal.schema.json"),
        example("Print all schemas in one document", "tribunal schema"),
        Answer,
    ),
    command_row(
        "completions",
        example("Install completions for zsh", "tribunal completions zsh > ~/.zfunc/_tribunal"),
        example("Load completions in the current fish", "tribunal completions fish | source"),
        Answer,
    ),
    command_row(
        "man",
        example("Read the manual page", "tribunal man | man -l -"),
        example("Install the pages of all commands", "tribunal man --dir ~/.local/share/man/man1"),
        Answer,
    ),
];

const BOARD_REFUSED: &str = "the board cannot be used, or the move was refused; nothing was changed";
const LOOP_RUN: &str = "tribunal loop run -p \"Make all tests pass\" --max-iterations 20";
