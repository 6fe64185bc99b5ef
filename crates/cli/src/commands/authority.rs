//! What each command needs: some only read, some start runs, and some say what only the user may say. Inside a run, where
//! agents, checks and hooks work, only the first ones are available: an agent must not answer its own questions.

use super::{CliCommand, board::BoardCommand, breaker::BreakerAction, loops::LoopCommand};
use crate::{
    clients::enclosing_run::{EnclosingRun, find_enclosing_run},
    messages::user_errors::UserError,
};

/// What a command needs. The texts are the command as it is typed and what it does, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandAuthority {
    /// The command changes nothing, or is meant for agents and their clients.
    None,
    /// The command does what only the user may do.
    User { command_name: &'static str, action: &'static str },
    /// The command starts runs, which cost money and start agents.
    StartRuns { command_name: &'static str },
}

impl CliCommand {
    /// Returns what this command needs. Every command has to be named here, also a new one.
    fn authority(&self) -> CommandAuthority {
        let user = |command_name, action| CommandAuthority::User { command_name, action };
        let start_runs = |command_name| CommandAuthority::StartRuns { command_name };
        match self {
            // Previews change nothing.
            CliCommand::Init(arguments) if arguments.dry_run => CommandAuthority::None,
            CliCommand::Review(arguments) if arguments.dry_run => CommandAuthority::None,
            CliCommand::Sprint(arguments) if arguments.dry_run => CommandAuthority::None,
            CliCommand::Gc(arguments) if arguments.dry_run => CommandAuthority::None,
            CliCommand::Discard(arguments) if arguments.dry_run => CommandAuthority::None,
            CliCommand::Undo(arguments) if !arguments.yes => CommandAuthority::None,
            CliCommand::Board(BoardCommand::Move(arguments)) if arguments.dry_run => CommandAuthority::None,
            CliCommand::Loop(LoopCommand::Plan(arguments)) if arguments.dry_run => CommandAuthority::None,
            CliCommand::Story(arguments) if arguments.dry_run || !arguments.has_edits() => CommandAuthority::None,
            CliCommand::Trust(arguments) if arguments.list => CommandAuthority::None,
            CliCommand::Decisions(arguments) if arguments.answer.is_none() => CommandAuthority::None,

            CliCommand::Review(_) => start_runs("review"),
            CliCommand::Demo(_) => start_runs("demo"),
            CliCommand::Loop(LoopCommand::Run(arguments)) if arguments.session.in_session => {
                user("loop run --in-session", "hold a session")
            }
            CliCommand::Loop(LoopCommand::Run(_)) => start_runs("loop run"),
            CliCommand::Sprint(_) => start_runs("sprint"),

            CliCommand::Init(_) => user("init", "change the project"),
            CliCommand::Resume(_) => user("resume", "resume a run"),
            CliCommand::Stop(_) => user("stop", "stop a run"),
            CliCommand::Say(_) => user("say", "send a message"),
            CliCommand::Decisions(_) => user("decisions", "answer"),
            CliCommand::Undo(_) => user("undo", "undo changes"),
            CliCommand::Discard(_) => user("discard", "discard or restore runs"),
            CliCommand::Board(BoardCommand::Move(_)) => user("board move", "change the board"),
            CliCommand::Story(_) => user("story", "edit a story"),
            CliCommand::Trust(_) => user("trust", "change what is trusted"),
            CliCommand::Loop(LoopCommand::Plan(_)) => user("loop plan", "change the plan"),
            CliCommand::Loop(LoopCommand::Cancel(_)) => user("loop cancel", "release a session"),
            CliCommand::Breaker(arguments) => match arguments.action {
                Some(BreakerAction::Reset) => user("breaker reset", "close the circuit breaker"),
                None => CommandAuthority::None,
            },
            CliCommand::Gc(_) => user("gc", "remove anything"),
            CliCommand::Recover(_) => user("recover", "rebuild the journal"),

            CliCommand::Runs(_)
            | CliCommand::Status(_)
            | CliCommand::Findings(_)
            | CliCommand::Report(_)
            | CliCommand::Diff(_)
            | CliCommand::Validate(_)
            | CliCommand::Verify(_)
            | CliCommand::Log(_)
            | CliCommand::Doctor(_)
            | CliCommand::Loop(LoopCommand::Status(_))
            | CliCommand::Inspect(_)
            | CliCommand::Schema(_)
            | CliCommand::Completions(_)
            | CliCommand::Man(_)
            // Clients call hooks inside an agent, and a played script is an agent itself.
            | CliCommand::Hook(_)
            | CliCommand::PlayScript(_) => CommandAuthority::None,
        }
    }
}

/// Fails if the command is for the user and this process is not the user's.
pub(super) fn require_authority(command: &CliCommand) -> Result<(), UserError> {
    let authority = command.authority();
    // Looking for a run takes a moment, which most commands do not need to spend.
    if authority == CommandAuthority::None {
        return Ok(());
    }
    match find_enclosing_run() {
        Some(enclosing_run) => refuse_inside(authority, &enclosing_run),
        None => Ok(()),
    }
}

fn refuse_inside(authority: CommandAuthority, enclosing_run: &EnclosingRun) -> Result<(), UserError> {
    match authority {
        CommandAuthority::None => Ok(()),
        // Agents try this by themselves, so one line has to do.
        CommandAuthority::StartRuns { command_name } => Err(UserError::usage(format!(
            "`tribunal {command_name}` cannot start a run here: this process runs inside {enclosing_run}"
        ))),
        CommandAuthority::User { command_name, action } => Err(UserError::usage(format!(
            "`tribunal {command_name}` cannot {action} here: this process runs inside {enclosing_run}"
        ))
        .with_reason("Agents and checks cannot act for you. Nothing was changed.")
        .with_step("run it in a terminal of your own")),
    }
}
