//! The commands, one file each: its arguments, and a `run` that returns an exit code. To add a command, copy a
//! neighbour, declare it here and give it an arm in [`run_command`] and in [`CliCommand::authority`].

mod authority;
mod board;
mod breaker;
mod completions;
mod decisions;
mod deferred;
mod demo;
mod diff;
mod discard;
mod doctor;
mod findings;
mod gc;
pub(crate) mod hook;
mod init;
mod inspect;
mod log;
mod loops;
mod man;
mod play_script;
mod recover;
mod report;
mod resume;
mod review;
mod runs;
mod say;
mod schema;
mod session_loops;
mod sprint;
mod status;
mod stop;
mod story;
mod trust;
mod undo;
mod validate;
mod verify;
mod workplace;

use clap::Subcommand;

use self::deferred::Deferred;
use crate::{context::CommandContext, messages::user_errors::UserError};

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Set up Tribunal in a project (client hooks, settings, .gitignore), or remove its hooks
    Init(Deferred<init::InitArguments>),
    /// Review a small sample project with scripted agents; needs no account and no network
    Demo(Deferred<demo::DemoArguments>),
    /// Review files or a code change, and fix what is found
    Review(Deferred<review::ReviewArguments>),
    /// Resume a run that was stopped, crashed or waits for an answer
    Resume(Deferred<resume::ResumeArguments>),
    /// Stop a run; it can be resumed later
    Stop(Deferred<stop::StopArguments>),
    /// Send a message to a run's agents, as part of their next prompts
    Say(Deferred<say::SayArguments>),
    /// List the runs of this project
    Runs(Deferred<runs::RunsArguments>),
    /// Show the state of runs and what to do next
    Status(Deferred<status::StatusArguments>),
    /// Show a run's findings with their evidence
    Findings(Deferred<findings::FindingsArguments>),
    /// Show whether the result of a sprint or a story can be merged, and what to look at first
    Report(Deferred<report::ReportArguments>),
    /// List decisions that are waiting for you, or answer one
    Decisions(Deferred<decisions::DecisionsArguments>),
    /// Show what a run changed, or the fix for one finding
    Diff(Deferred<diff::DiffArguments>),
    /// Undo what a run changed, or the fix for one finding; later edits are kept
    Undo(Deferred<undo::UndoArguments>),
    /// Move runs to the trash, where they are kept for a week
    Discard(Deferred<discard::DiscardArguments>),
    /// Move stories on the project's board
    #[command(subcommand)]
    Board(board::BoardCommand),
    /// Check that documents, board, stories and settings are consistent, and whether a workflow can run
    Validate(Deferred<validate::ValidateArguments>),
    /// Develop stories: create, develop, check, review, commit
    Sprint(Deferred<Box<sprint::SprintArguments>>),
    /// Check a story against files and git, as a run does after each step
    Verify(Deferred<verify::VerifyArguments>),
    /// Show a story file, tick its tasks, or add files and review follow-ups to it
    Story(Deferred<story::StoryArguments>),
    /// Show the log of a run or a loop, from its journal
    Log(Deferred<log::LogArguments>),
    /// Allow the commands that came with this project to run
    Trust(Deferred<trust::TrustArguments>),
    /// Check clients, agents, settings and git, and show how to fix what is missing; costs nothing
    Doctor(Deferred<doctor::DoctorArguments>),
    /// Work on a task again and again until it is done and the checks pass
    #[command(subcommand, name = "loop")]
    Loop(loops::LoopCommand),
    /// Show the circuit breaker that stops loops without progress, or reset it
    Breaker(breaker::BreakerArguments),
    /// Explain how Tribunal reads a file or an agent's output
    #[command(subcommand)]
    Inspect(inspect::InspectCommand),
    /// Answer a client's hook, such as whether a session may stop; always exits with 0
    Hook(Deferred<hook::HookArguments>),
    /// Free disk space: workspaces of finished runs, leftovers, unreferenced texts
    Gc(Deferred<gc::GcArguments>),
    /// Show what is left of a damaged journal, export it, or rebuild the journal
    Recover(Deferred<recover::RecoverArguments>),
    /// Print JSON Schemas of everything Tribunal reads and writes
    Schema(Deferred<schema::SchemaArguments>),
    /// Print shell completions
    Completions(Deferred<completions::CompletionsArguments>),
    /// Print the manual page, or write all pages to a directory
    Man(Deferred<man::ManArguments>),
    /// Play a script as an agent would
    #[command(name = tribunal_agents::replay::PLAY_COMMAND, hide = true)]
    PlayScript(Deferred<play_script::PlayScriptArguments>),
}

pub(crate) fn run_command(command: CliCommand, context: &CommandContext) -> Result<u8, UserError> {
    authority::require_authority(&command)?;
    match command {
        CliCommand::Init(arguments) => init::run(&arguments, context),
        CliCommand::Demo(arguments) => demo::run(arguments.0, context),
        CliCommand::Review(arguments) => review::run(arguments.0, context),
        CliCommand::Resume(arguments) => resume::run(&arguments, context),
        CliCommand::Stop(arguments) => stop::run(&arguments, context),
        CliCommand::Say(arguments) => say::run(&arguments, context),
        CliCommand::Runs(arguments) => runs::run(&arguments, context),
        CliCommand::Status(arguments) => status::run(&arguments, context),
        CliCommand::Findings(arguments) => findings::run(&arguments, context),
        CliCommand::Report(arguments) => report::run(&arguments, context),
        CliCommand::Decisions(arguments) => decisions::run(arguments.0, context),
        CliCommand::Diff(arguments) => diff::run(&arguments, context),
        CliCommand::Discard(arguments) => discard::run(&arguments, context),
        CliCommand::Undo(arguments) => undo::run(&arguments, context),
        CliCommand::Board(subcommand) => board::run(&subcommand, context),
        CliCommand::Validate(arguments) => validate::run(&arguments, context),
        CliCommand::Sprint(arguments) => sprint::run(&arguments, context),
        CliCommand::Verify(arguments) => verify::run(&arguments, context),
        CliCommand::Story(arguments) => story::run(&arguments, context),
        CliCommand::Log(arguments) => log::run(&arguments, context),
        CliCommand::Trust(arguments) => trust::run(&arguments, context),
        CliCommand::Doctor(arguments) => doctor::run(&arguments, context),
        CliCommand::Inspect(subcommand) => inspect::run(subcommand, context),
        CliCommand::Loop(subcommand) => loops::run(subcommand, context),
        CliCommand::Breaker(arguments) => breaker::run(&arguments, context),
        // A hook never fails; it answers before the parser is reached, and this arm is only for completeness.
        CliCommand::Hook(arguments) => Ok(hook::run(&arguments)),
        CliCommand::Gc(arguments) => gc::run(&arguments, context),
        CliCommand::Recover(arguments) => recover::run(&arguments, context),
        CliCommand::Schema(arguments) => schema::run(&arguments),
        CliCommand::Completions(arguments) => completions::run(&arguments),
        CliCommand::Man(arguments) => man::run(&arguments, context),
        CliCommand::PlayScript(arguments) => play_script::run(&arguments),
    }
}
