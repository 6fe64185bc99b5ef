//! The commands, one file each: its arguments, and a `run` that returns an exit code. To add a command, copy a
//! neighbour, declare it here and give it an arm in [`run_command`].

mod board;
mod completions;
mod decisions;
mod demo;
mod diff;
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
mod resume;
mod review;
mod runs;
mod say;
mod schema;
mod status;
mod stop;
mod story;
mod trust;
mod undo;
mod validate;

use clap::Subcommand;

use crate::{context::CommandContext, user_errors::UserError};

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Set Tribunal up in a project: hooks of clients, settings, what git overlooks; or take the hooks out again
    Init(init::InitArguments),
    /// See it work: a full review of a small project by scripted agents, without account or network
    Demo(demo::DemoArguments),
    /// Review files or a code change: panel, findings, fixes, again, until an outcome
    Review(review::ReviewArguments),
    /// Go on with a run that was stopped, waits or died
    Resume(resume::ResumeArguments),
    /// Stop a run; it can go on later
    Stop(stop::StopArguments),
    /// Tell a run's agents something, in their next briefs
    Say(say::SayArguments),
    /// List the project's runs
    Runs(runs::RunsArguments),
    /// Where a run stands, and what to type next
    Status(status::StatusArguments),
    /// Show a run's findings with their evidence
    Findings(findings::FindingsArguments),
    /// Show what waits for a person, or answer it
    Decisions(decisions::DecisionsArguments),
    /// Show what a run changed, or what repaired one finding
    Diff(diff::DiffArguments),
    /// Take back what a run changed, or what repaired one finding; later edits stay
    Undo(undo::UndoArguments),
    /// Move stories on the project's board
    #[command(subcommand)]
    Board(board::BoardCommand),
    /// Check that documents, board, stories and settings fit together, and whether a workflow can run
    Validate(validate::ValidateArguments),
    /// Show a story's file, tick its tasks, add files, write a review's follow-ups into it
    Story(story::StoryArguments),
    /// Draw a past run again, from its journal
    Log(log::LogArguments),
    /// Let the commands that came with this project run here
    Trust(trust::TrustArguments),
    /// Say what is here, what is missing and what mends it; it costs nothing
    Doctor(doctor::DoctorArguments),
    /// Let a session of yours go on until it is done, or a limit is reached
    #[command(subcommand, name = "loop")]
    Loop(loops::LoopCommand),
    /// Explain what Tribunal sees in a file
    #[command(subcommand)]
    Inspect(inspect::InspectCommand),
    /// Answer a client's hook: may this session stop, may this tool be used; always exits with 0
    Hook(hook::HookArguments),
    /// Reclaim space: copies of ended runs, leftovers, texts that nothing refers to
    Gc(gc::GcArguments),
    /// Print JSON Schemas of everything Tribunal reads and writes
    Schema(schema::SchemaArguments),
    /// Print completions for a shell
    Completions(completions::CompletionsArguments),
    /// Print the manual page, or write all of them into a folder
    Man(man::ManArguments),
    /// Play a script as an agent would
    #[command(name = tribunal_agents::replay::PLAY_COMMAND, hide = true)]
    PlayScript(play_script::PlayScriptArguments),
}

pub(crate) fn run_command(command: CliCommand, context: &CommandContext) -> Result<u8, UserError> {
    match command {
        CliCommand::Init(arguments) => init::run(&arguments, context),
        CliCommand::Demo(arguments) => demo::run(arguments, context),
        CliCommand::Review(arguments) => review::run(arguments, context),
        CliCommand::Resume(arguments) => resume::run(&arguments, context),
        CliCommand::Stop(arguments) => stop::run(&arguments, context),
        CliCommand::Say(arguments) => say::run(&arguments, context),
        CliCommand::Runs(arguments) => runs::run(&arguments, context),
        CliCommand::Status(arguments) => status::run(&arguments, context),
        CliCommand::Findings(arguments) => findings::run(&arguments, context),
        CliCommand::Decisions(arguments) => decisions::run(arguments, context),
        CliCommand::Diff(arguments) => diff::run(&arguments, context),
        CliCommand::Undo(arguments) => undo::run(&arguments, context),
        CliCommand::Board(subcommand) => board::run(&subcommand, context),
        CliCommand::Validate(arguments) => validate::run(&arguments, context),
        CliCommand::Story(arguments) => story::run(&arguments, context),
        CliCommand::Log(arguments) => log::run(&arguments, context),
        CliCommand::Trust(arguments) => trust::run(&arguments, context),
        CliCommand::Doctor(arguments) => doctor::run(&arguments, context),
        CliCommand::Inspect(subcommand) => inspect::run(subcommand, context),
        CliCommand::Loop(subcommand) => loops::run(subcommand, context),
        // A hook never fails; it answers before the parser is reached, and this arm is only for completeness.
        CliCommand::Hook(arguments) => Ok(hook::run(&arguments)),
        CliCommand::Gc(arguments) => gc::run(&arguments, context),
        CliCommand::Schema(arguments) => schema::run(&arguments),
        CliCommand::Completions(arguments) => completions::run(&arguments),
        CliCommand::Man(arguments) => man::run(&arguments, context),
        CliCommand::PlayScript(arguments) => play_script::run(&arguments),
    }
}
