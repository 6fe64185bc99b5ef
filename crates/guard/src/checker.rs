//! Checks a command line call by call and reports the first problem.

use alloc::{string::ToString, vec::Vec};

use crate::{
    GuardPolicy, GuardRule, ToolDenial, WriteBounds, destructive,
    git::HarmDescription,
    invocation::ProgramInvocation,
    paths::{LexicalPath, PathBoundaries},
    shell::{self, ScriptItem, ShellCall, ShellWord},
    shell_state::{ShellState, WordLocation},
    write_targets::{self, WriteTarget},
};

/// The limit on scripts inside scripts, `bash -c "bash -c …"`.
const MAX_SCRIPT_DEPTH: usize = 6;

/// Checks command lines and write paths against a policy.
#[derive(Debug)]
pub(crate) struct CommandChecker<'m> {
    policy: GuardPolicy,
    boundaries: &'m PathBoundaries,
    session_bound: bool,
    /// One state per open subshell, the innermost last; never empty.
    shell_states: Vec<ShellState<'m>>,
    depth: usize,
    /// The pipeline in which a program fetches something from the network.
    fetching_pipeline: Option<usize>,
}

impl<'m> CommandChecker<'m> {
    pub fn new(policy: GuardPolicy, boundaries: &'m PathBoundaries, session_bound: bool) -> CommandChecker<'m> {
        CommandChecker {
            policy,
            boundaries,
            session_bound,
            shell_states: Vec::from([ShellState::new(boundaries)]),
            depth: 0,
            fetching_pipeline: None,
        }
    }

    /// The state of the innermost subshell.
    fn current_state(&mut self) -> &mut ShellState<'m> {
        // The parser emits balanced items, so this case does not occur; it only keeps the method free of panics.
        if self.shell_states.is_empty() {
            self.shell_states.push(ShellState::new(self.boundaries));
        }
        let innermost = self.shell_states.len() - 1;
        &mut self.shell_states[innermost]
    }

    /// Checks a command line or a nested script.
    pub fn check_command(&mut self, command_text: &str) -> Option<ToolDenial> {
        if self.depth >= MAX_SCRIPT_DEPTH {
            return None;
        }
        let script = shell::parse_script(command_text);
        // A fork bomb is a matter of the whole script: none of its calls is harmful alone.
        let bomb_harm = destructive::find_fork_bomb(&script).filter(|_| self.policy.destructive);
        if let Some(harm) = bomb_harm {
            return Some(deny_harm(&harm));
        }
        // Pipeline numbers are unique only within one script, so a nested script starts without a fetching pipeline.
        let outer_pipeline = self.fetching_pipeline.take();
        self.depth += 1;
        let denial = script.items.iter().find_map(|item| self.check_item(item));
        self.depth -= 1;
        self.fetching_pipeline = outer_pipeline;
        denial
    }

    fn check_item(&mut self, script_item: &ScriptItem) -> Option<ToolDenial> {
        match script_item {
            ScriptItem::EnterSubshell => {
                // A subshell works on a copy of the state: what it changes is lost when it ends.
                let subshell_state = self.current_state().clone();
                self.shell_states.push(subshell_state);
                None
            }
            ScriptItem::LeaveSubshell => {
                self.shell_states.pop();
                None
            }
            ScriptItem::Call(call) => self.check_call(call),
        }
    }

    fn check_call(&mut self, call: &ShellCall) -> Option<ToolDenial> {
        // Redirections come first: they take effect even if the call has no program (`> file`).
        let redirect_targets: Vec<WriteTarget> = call.output_files.iter().map(WriteTarget::for_write).collect();
        if let Some(denial) = self.check_targets(&redirect_targets) {
            return Some(denial);
        }
        // Assignments without a program set variables of the shell; before a program they are its environment only.
        if call.words.is_empty() {
            call.assignments
                .iter()
                .for_each(|(variable_name, value_word)| self.current_state().set_variable(variable_name, value_word));
            return None;
        }
        let invocation = ProgramInvocation::from_words(&call.words)?;
        self.track_state_changes(&invocation);
        if let Some(denial) = self.check_own_command(&invocation) {
            return Some(denial);
        }
        if let Some(harm) = self.find_harm(&invocation, call.pipeline_number) {
            return Some(deny_harm(&harm));
        }
        if let Some(denial) = self.check_targets(&write_targets::find_write_targets(&invocation)) {
            return Some(denial);
        }
        // The text of a here-document is a script only if a shell reads it; for other programs it is data.
        let stdin_script = call
            .stdin_text
            .clone()
            .filter(|_| invocation.reads_script_from_stdin() && invocation.program.ends_with("sh"));
        [invocation.inline_script(), stdin_script]
            .into_iter()
            .flatten()
            .find_map(|inner_script| self.check_command(&inner_script))
    }

    /// Records what changes the meaning of later words: the working directory and variables.
    fn track_state_changes(&mut self, invocation: &ProgramInvocation<'_>) {
        let operand = invocation.args.iter().find(|operand| operand.0 == "-" || !operand.0.starts_with('-'));
        match invocation.program.as_str() {
            "cd" | "pushd" => match operand {
                // `cd -` leads to a previous directory, which is not recorded.
                Some(operand) if operand.0 == "-" => self.current_state().working_dir = None,
                operand => self.current_state().change_dir(operand),
            },
            "popd" => self.current_state().working_dir = None,
            "export" | "local" | "declare" | "readonly" | "typeset" => {
                let assignments = invocation.args.iter().filter_map(shell::parse_assignment);
                assignments.for_each(|(variable_name, value_word)| {
                    self.current_state().set_variable(&variable_name, &value_word)
                });
            }
            "for" | "select" => {
                if let [variable_word, in_keyword, loop_values @ ..] = invocation.args
                    && in_keyword.0 == "in"
                {
                    self.current_state().set_loop_variable(&variable_word.to_plain_text(), loop_values);
                }
            }
            // The new value comes from input or is unset; the mark makes it ambiguous.
            "read" | "mapfile" | "readarray" | "unset" => {
                let unknown_value = ShellWord("\u{1}{#}".to_string());
                invocation.args.iter().for_each(|variable_word| {
                    self.current_state().set_variable(&variable_word.to_plain_text(), &unknown_value)
                });
            }
            _ => {}
        }
    }

    fn find_harm(&mut self, invocation: &ProgramInvocation<'_>, pipeline: usize) -> Option<HarmDescription> {
        if !self.policy.destructive {
            return None;
        }
        // A shell may be several programs behind the download, as in `curl x | tee log | bash`; the pipeline number connects
        // them.
        let runs_piped_script = self.fetching_pipeline == Some(pipeline) && invocation.reads_script_from_stdin();
        if runs_piped_script || destructive::runs_fetched_script(invocation) {
            return Some(destructive::unread_script_harm());
        }
        if destructive::fetches_from_network(invocation) {
            self.fetching_pipeline = Some(pipeline);
        }
        destructive::find_harm(invocation, self.current_state())
    }

    /// Refuses the commands of Tribunal that only the user may run.
    fn check_own_command(&self, invocation: &ProgramInvocation<'_>) -> Option<ToolDenial> {
        if invocation.program != "tribunal" || !self.session_bound || !self.policy.own_files {
            return None;
        }
        let mut operands = Vec::new();
        // Global options of Tribunal may stand before the subcommand; those with a value take the next word, too.
        let mut arguments = invocation.args.iter().map(ShellWord::to_plain_text);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "-C" | "--project" | "--color" => {
                    arguments.next();
                }
                option if option.starts_with('-') => {}
                _ => operands.push(argument),
            }
        }
        let mut operand_texts = operands.iter().map(alloc::string::String::as_str);
        let command = match (operand_texts.next()?, operand_texts.next()) {
            ("loop", Some("cancel")) => "loop cancel",
            (
                command @ ("decisions" | "trust" | "undo" | "board" | "story" | "init" | "hook" | "stop" | "say"
                | "discard" | "gc"),
                _,
            ) => command,
            _ => return None,
        };
        Some(ToolDenial::new(
            GuardRule::OwnCommands,
            &alloc::format!("`tribunal {command}`"),
            "this session is under review, and only the user may run that command",
            "Fix what is open; if only the user can decide, end your last message with <review-blocked>REASON</review-blocked>",
        ))
    }

    /// Checks every location that the targets may point to.
    fn check_targets(&mut self, write_targets: &[WriteTarget]) -> Option<ToolDenial> {
        for write_target in write_targets {
            for location in self.current_state().locate_word(&write_target.word) {
                // Targets whose location is not known are allowed here; removals of such targets are checked as destructive
                // commands.
                if let WordLocation::Known(target_path) = location
                    && let Some(denial) = self.check_target(write_target, &target_path)
                {
                    return Some(denial);
                }
            }
        }
        None
    }

    fn check_target(&self, write_target: &WriteTarget, target_path: &LexicalPath) -> Option<ToolDenial> {
        if let Some(harm) = destructive::find_device_harm(target_path).filter(|_| self.policy.destructive) {
            return Some(deny_harm(&harm));
        }
        if destructive::is_harmless_device(target_path) {
            return None;
        }
        self.check_write(target_path, write_target.removes, write_target.is_bounded)
    }

    /// Checks whether a file may be written or removed.
    pub fn check_write(&self, written_path: &LexicalPath, removes: bool, is_bounded: bool) -> Option<ToolDenial> {
        let displayed_path = self.boundaries.display_path(written_path);
        if self.policy.own_files
            && let Some(own_path) = self.boundaries.find_own_path(written_path, removes)
        {
            return Some(ToolDenial::new(
                GuardRule::OwnFiles,
                &alloc::format!("changing `{}`", crate::clip_text(&displayed_path)),
                &alloc::format!(
                    "`{}` belongs to Tribunal, and only Tribunal and the user may write there",
                    crate::clip_text(&own_path)
                ),
                "Work on the subject itself; Tribunal updates its own files",
            ));
        }
        // Own files are protected everywhere, even under bounds that allow everything else.
        if !is_bounded || self.policy.paths == WriteBounds::Off || self.boundaries.is_in_scratch(written_path) {
            return None;
        }
        let refused_action = alloc::format!("writing to `{}`", crate::clip_text(&displayed_path));
        if !self.boundaries.is_in_project(written_path) {
            let root_text = alloc::format!("/{}", self.boundaries.project_root.0.join("/"));
            return Some(ToolDenial::new(
                GuardRule::OutsideProject,
                &refused_action,
                &alloc::format!("it is outside the project `{}`", crate::clip_text(&root_text)),
                "Write inside the project; reading elsewhere is fine",
            ));
        }
        if self.policy.paths == WriteBounds::Subject
            && self.boundaries.has_subject()
            && !self.boundaries.is_in_subject(written_path)
        {
            return Some(ToolDenial::new(
                GuardRule::OutsideSubject,
                &refused_action,
                "it is not under review",
                "Change only what is under review; say in your answer what else would have to change",
            ));
        }
        None
    }
}

/// Turns a harmful command into a refusal.
fn deny_harm(harm: &HarmDescription) -> ToolDenial {
    ToolDenial::new(GuardRule::Destructive, &harm.action, harm.explanation, harm.alternative)
}
