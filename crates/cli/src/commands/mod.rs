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

use crate::{complaint::Complaint, context::Context};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Set Tribunal up in a project: hooks of clients, settings, what git overlooks; or take the hooks out again
    Init(init::Arguments),
    /// See it work: a full review of a small project by scripted agents, without account or network
    Demo(demo::Arguments),
    /// Review files or a code change: panel, findings, fixes, again, until an outcome
    Review(review::Arguments),
    /// Go on with a run that was stopped, waits or died
    Resume(resume::Arguments),
    /// Stop a run; it can go on later
    Stop(stop::Arguments),
    /// Tell a run's agents something, in their next briefs
    Say(say::Arguments),
    /// List the project's runs
    Runs(runs::Arguments),
    /// Where a run stands, and what to type next
    Status(status::Arguments),
    /// Show a run's findings with their evidence
    Findings(findings::Arguments),
    /// Show what waits for a person, or answer it
    Decisions(decisions::Arguments),
    /// Show what a run changed, or what repaired one finding
    Diff(diff::Arguments),
    /// Take back what a run changed, or what repaired one finding; later edits stay
    Undo(undo::Arguments),
    /// Move stories on the project's board
    #[command(subcommand)]
    Board(board::What),
    /// Check that documents, board, stories and settings fit together, and whether a workflow can run
    Validate(validate::Arguments),
    /// Show a story's file, tick its tasks, add files, write a review's follow-ups into it
    Story(story::Arguments),
    /// Draw a past run again, from its journal
    Log(log::Arguments),
    /// Let the commands that came with this project run here
    Trust(trust::Arguments),
    /// Say what is here, what is missing and what mends it; it costs nothing
    Doctor(doctor::Arguments),
    /// Let a session of yours go on until it is done, or a limit is reached
    #[command(subcommand, name = "loop")]
    Loop(loops::What),
    /// Explain what Tribunal sees in a file
    #[command(subcommand)]
    Inspect(inspect::What),
    /// Answer a client's hook: may this session stop, may this tool be used; always exits with 0
    Hook(hook::Arguments),
    /// Reclaim space: copies of ended runs, leftovers, texts that nothing refers to
    Gc(gc::Arguments),
    /// Print JSON Schemas of everything Tribunal reads and writes
    Schema(schema::Arguments),
    /// Print completions for a shell
    Completions(completions::Arguments),
    /// Print the manual page, or write all of them into a folder
    Man(man::Arguments),
    /// Play a script as an agent would
    #[command(name = tribunal_agents::replay::COMMAND, hide = true)]
    PlayScript(play_script::Arguments),
}

pub(crate) fn run(command: Command, context: &Context) -> Result<u8, Complaint> {
    match command {
        Command::Init(arguments) => init::run(&arguments, context),
        Command::Demo(arguments) => demo::run(arguments, context),
        Command::Review(arguments) => review::run(arguments, context),
        Command::Resume(arguments) => resume::run(&arguments, context),
        Command::Stop(arguments) => stop::run(&arguments, context),
        Command::Say(arguments) => say::run(&arguments, context),
        Command::Runs(arguments) => runs::run(&arguments, context),
        Command::Status(arguments) => status::run(&arguments, context),
        Command::Findings(arguments) => findings::run(&arguments, context),
        Command::Decisions(arguments) => decisions::run(arguments, context),
        Command::Diff(arguments) => diff::run(&arguments, context),
        Command::Undo(arguments) => undo::run(&arguments, context),
        Command::Board(what) => board::run(&what, context),
        Command::Validate(arguments) => validate::run(&arguments, context),
        Command::Story(arguments) => story::run(&arguments, context),
        Command::Log(arguments) => log::run(&arguments, context),
        Command::Trust(arguments) => trust::run(&arguments, context),
        Command::Doctor(arguments) => doctor::run(&arguments, context),
        Command::Inspect(what) => inspect::run(what, context),
        Command::Loop(what) => loops::run(what, context),
        // A hook never fails; it answers before the parser is reached, and this arm is only for completeness.
        Command::Hook(arguments) => Ok(hook::run(&arguments)),
        Command::Gc(arguments) => gc::run(&arguments, context),
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments, context),
        Command::PlayScript(arguments) => play_script::run(&arguments),
    }
}
