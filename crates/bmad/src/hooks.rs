//! The commands that the file of a step or an agent wants to run at certain moments: `hooks:` in its front matter.
//!
//! Three forms are read: a plain command, `{command, once, critical}`, and the client's own nested form, `{matcher, hooks:
//! [{type: command, command}]}`. A mistake is a problem with its line; the other hooks are still read, in their order.
//! Whether a command may run is not decided here, and nothing is run.

use crate::{
    markdown::MarkdownPage,
    problem::FileProblem,
    yaml::{self, YamlContent, YamlEntry, YamlNode},
};

/// The moment at which a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkflowHookMoment {
    SessionStart,
    PreToolUse,
    PostToolUse,
    Stop,
}

impl WorkflowHookMoment {
    pub const ALL: [WorkflowHookMoment; 4] = [
        WorkflowHookMoment::SessionStart,
        WorkflowHookMoment::PreToolUse,
        WorkflowHookMoment::PostToolUse,
        WorkflowHookMoment::Stop,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            WorkflowHookMoment::SessionStart => "SessionStart",
            WorkflowHookMoment::PreToolUse => "PreToolUse",
            WorkflowHookMoment::PostToolUse => "PostToolUse",
            WorkflowHookMoment::Stop => "Stop",
        }
    }

    /// The moment of a key: `PreToolUse`, `pre-tool-use` and `pre_tool_use` are the same.
    fn from_key(key: &str) -> Option<WorkflowHookMoment> {
        let fold_name = |moment_name: &str| moment_name.replace(['-', '_'], "").to_lowercase();
        WorkflowHookMoment::ALL.into_iter().find(|moment| fold_name(moment.as_str()) == fold_name(key))
    }
}

/// One command with its conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowHook {
    pub moment: WorkflowHookMoment,
    /// The command, for the shell.
    pub command: String,
    /// The tools that it is for, as names joined by `|`; `None` means all of them.
    pub matcher: Option<String>,
    /// Whether it runs only the first time in a session.
    pub once: bool,
    /// Whether the hooks behind it do not run if it fails.
    pub critical: bool,
    /// The line in the file, not in the front matter.
    pub line: usize,
}

impl WorkflowHook {
    /// Whether the hook is meant for a tool. A matcher is a list of names; a `*` in a name stands for any letters.
    pub fn matches_tool(&self, tool_name: &str) -> bool {
        let Some(matcher) = &self.matcher else { return true };
        matcher.split('|').map(str::trim).any(|pattern| {
            // Clients write `mcp__.*` as a regular expression; both spellings mean the same here.
            let mut pattern_parts = pattern.split(".*").flat_map(|pattern_part| pattern_part.split('*'));
            let prefix = pattern_parts.next().unwrap_or_default();
            let Some(mut unmatched) = tool_name.strip_prefix(prefix) else { return false };
            let mut pattern_parts: Vec<&str> = pattern_parts.collect();
            let Some(suffix) = pattern_parts.pop() else { return unmatched.is_empty() };
            // The parts between stars must occur in their order, each behind the one before it.
            for pattern_part in pattern_parts {
                match unmatched.split_once(pattern_part) {
                    Some((_, after_part)) => unmatched = after_part,
                    None => return false,
                }
            }
            // The last part must end the name, without overlapping the parts that already matched.
            unmatched.ends_with(suffix)
        })
    }
}

/// The hooks of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkflowHooks {
    /// The hooks in the order of the file.
    pub hooks: Vec<WorkflowHook>,
    pub problems: Vec<FileProblem>,
}

impl WorkflowHooks {
    pub fn at_moment(&self, moment: WorkflowHookMoment) -> impl Iterator<Item = &WorkflowHook> {
        self.hooks.iter().filter(move |hook| hook.moment == moment)
    }
}

/// Reads the hooks of a file; `file_path` is only used for problems.
pub fn read_hooks(file_path: &str, file_text: &str) -> WorkflowHooks {
    let markdown = MarkdownPage::parse(file_text);
    let mut hook_reader = WorkflowHookReader { file_path, lines_above: 0, hooks: WorkflowHooks::default() };
    let Some(front_range) = markdown.front_range.clone() else { return hook_reader.hooks };
    // The YAML parser counts from the front matter; problems name lines of the file.
    hook_reader.lines_above =
        file_text.get(..front_range.start).map_or(0, |text_above| text_above.matches('\n').count());
    match yaml::parse_yaml(markdown.front_matter().unwrap_or_default()) {
        Ok(front_matter) => {
            let hooks_entry = front_matter.entries().iter().find(|hooks_entry| hooks_entry.key == "hooks");
            hooks_entry.into_iter().for_each(|hooks_entry| hook_reader.read_events(hooks_entry));
        }
        Err(parse_error) => {
            let line_number = parse_error.line.unwrap_or(1);
            hook_reader.report_problem(
                "front-matter-broken",
                line_number,
                format!("{} (in the front matter)", parse_error.message),
            );
        }
    }
    hook_reader.hooks
}

/// Reads the hooks of one file.
struct WorkflowHookReader<'a> {
    file_path: &'a str,
    lines_above: usize,
    hooks: WorkflowHooks,
}

const NOT_RUN_REASON: &str = "Hooks configured here will not run.";

/// What applies to all commands of a group.
#[derive(Clone, Default)]
struct WorkflowHookGroup {
    matcher: Option<String>,
    once: bool,
    critical: bool,
}

/// What the keys of one hook or group say.
struct WorkflowHookFields<'n> {
    group: WorkflowHookGroup,
    command_node: Option<&'n YamlNode>,
    inner_hooks: Option<&'n YamlEntry>,
}

impl WorkflowHookReader<'_> {
    fn report_problem(&mut self, rule: &'static str, line_number: usize, message: String) {
        let problem = FileProblem::warning(rule, self.file_path, message).at_line(line_number + self.lines_above);
        self.hooks.problems.push(match rule {
            "hook-key" => problem.with_advice("use `command`, `once`, `critical` or `matcher`"),
            "hook-event" => {
                problem.with_reason(NOT_RUN_REASON).with_advice("use SessionStart, PreToolUse, PostToolUse or Stop")
            }
            "front-matter-broken" => problem.with_reason(NOT_RUN_REASON).with_advice("fix the YAML"),
            _ => problem.with_reason(NOT_RUN_REASON).with_advice("write it like this: `- command: \"make lint\"`"),
        });
    }

    fn read_events(&mut self, hooks_entry: &YamlEntry) {
        match &hooks_entry.value.content {
            YamlContent::Null => {}
            YamlContent::Mapping(events) => events.iter().for_each(|event| self.read_event(event)),
            YamlContent::Scalar(_) | YamlContent::Sequence(_) => {
                self.report_problem("hook-shape", hooks_entry.line, "`hooks` must be a mapping of events".into());
            }
        }
    }

    fn read_event(&mut self, event_entry: &YamlEntry) {
        let Some(moment) = WorkflowHookMoment::from_key(&event_entry.key) else {
            return self.report_problem(
                "hook-event",
                event_entry.line,
                format!("unknown hook event `{}`", event_entry.key),
            );
        };
        match &event_entry.value.content {
            YamlContent::Null => {}
            YamlContent::Sequence(hook_nodes) => hook_nodes
                .iter()
                .for_each(|hook_node| self.read_item(moment, hook_node, &WorkflowHookGroup::default(), true)),
            // A single hook needs no list.
            YamlContent::Scalar(_) | YamlContent::Mapping(_) => {
                self.read_item(moment, &event_entry.value, &WorkflowHookGroup::default(), true)
            }
        }
    }

    /// Reads a command or, at the outer level only, a group of commands.
    fn read_item(
        &mut self,
        moment: WorkflowHookMoment,
        hook_node: &YamlNode,
        group: &WorkflowHookGroup,
        is_outer: bool,
    ) {
        match &hook_node.content {
            YamlContent::Scalar(_) => self.add_command(moment, hook_node, group),
            YamlContent::Mapping(hook_entries) => {
                let Some(hook_fields) = self.read_fields(hook_entries, group, is_outer) else { return };
                let WorkflowHookFields { group, command_node, inner_hooks } = hook_fields;
                match (command_node, inner_hooks) {
                    (Some(command_node), None) => self.add_command(moment, command_node, &group),
                    (None, Some(inner_hooks)) => match &inner_hooks.value.content {
                        YamlContent::Sequence(inner_nodes) => {
                            inner_nodes.iter().for_each(|hook_node| self.read_item(moment, hook_node, &group, false))
                        }
                        _ => self.report_problem(
                            "hook-shape",
                            inner_hooks.line,
                            "`hooks` in a group must be a list".into(),
                        ),
                    },
                    (Some(_), Some(inner_hooks)) => {
                        self.report_problem(
                            "hook-shape",
                            inner_hooks.line,
                            "a hook can have `command` or `hooks`, not both".into(),
                        );
                    }
                    (None, None) => {
                        self.report_problem("hook-command", hook_node.line, "hook without a command".into())
                    }
                }
            }
            YamlContent::Null => self.report_problem("hook-command", hook_node.line, "hook without a command".into()),
            YamlContent::Sequence(_) => {
                self.report_problem("hook-shape", hook_node.line, "expected a hook, found a list".into())
            }
        }
    }

    /// Reads the keys of a hook or of a group; `None` if it is no command, which is reported.
    fn read_fields<'n>(
        &mut self,
        hook_entries: &'n [YamlEntry],
        outer_group: &WorkflowHookGroup,
        is_outer: bool,
    ) -> Option<WorkflowHookFields<'n>> {
        // A group's settings apply to its commands, and each command may override them.
        let (mut group, mut command_node, mut inner_hooks) = (outer_group.clone(), None, None);
        for hook_entry in hook_entries {
            match hook_entry.key.as_str() {
                "command" => command_node = Some(&hook_entry.value),
                "hooks" if is_outer => inner_hooks = Some(hook_entry),
                "matcher" => {
                    group.matcher =
                        self.read_text(hook_entry).filter(|matcher_text| !matches!(matcher_text.as_str(), "" | "*"))
                }
                "once" => group.once = self.read_flag(hook_entry),
                "critical" => group.critical = self.read_flag(hook_entry),
                // A hook that is not a command, such as a prompt for a model, has nothing that could be run.
                "type" if hook_entry.value.scalar_text() != Some("command") => {
                    let type_name = hook_entry.value.scalar_text().unwrap_or("something else");
                    self.report_problem("hook-type", hook_entry.line, format!("unsupported hook type `{type_name}`"));
                    return None;
                }
                // These keys belong to the client, or they are descriptions.
                "type" | "timeout" | "name" | "description" => {}
                // An unknown key costs only itself: the command may still be right.
                unknown_key => {
                    let message = format!("unknown hook key `{unknown_key}`; ignored");
                    self.report_problem("hook-key", hook_entry.line, message);
                }
            }
        }
        Some(WorkflowHookFields { group, command_node, inner_hooks })
    }

    fn add_command(&mut self, moment: WorkflowHookMoment, command_node: &YamlNode, group: &WorkflowHookGroup) {
        let WorkflowHookGroup { matcher, once, critical } = group.clone();
        match command_node.scalar_text() {
            // No shell can be given a NUL byte.
            Some(command_text) if command_text.contains('\0') => {
                self.report_problem("hook-command", command_node.line, "the command contains a NUL byte".into());
            }
            Some(command_text) if !command_text.trim().is_empty() => {
                let line_number = command_node.line + self.lines_above;
                let command = command_text.trim_end().to_string();
                self.hooks.hooks.push(WorkflowHook { moment, command, matcher, once, critical, line: line_number });
            }
            Some(_) => self.report_problem("hook-command", command_node.line, "the command is empty".into()),
            None => self.report_problem("hook-command", command_node.line, "the command is not a string".into()),
        }
    }

    fn read_text(&mut self, hook_entry: &YamlEntry) -> Option<String> {
        let scalar = hook_entry.value.scalar_text().map(str::to_string);
        if scalar.is_none() {
            self.report_problem("hook-key", hook_entry.line, format!("`{}` is not a string; ignored", hook_entry.key));
        }
        scalar
    }

    fn read_flag(&mut self, hook_entry: &YamlEntry) -> bool {
        match hook_entry.value.scalar_text().map(str::to_lowercase).as_deref() {
            Some("true" | "yes" | "on") => true,
            Some("false" | "no" | "off") => false,
            _ => {
                let message = format!("`{}` is neither true nor false; using false", hook_entry.key);
                self.report_problem("hook-key", hook_entry.line, message);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn render_hooks(file_text: &str) -> String {
        let hooks = read_hooks("step.md", file_text);
        let render_hook = |hook: &WorkflowHook| {
            let flags = [("once", hook.once), ("critical", hook.critical)];
            let flags: String = flags.iter().filter(|flag| flag.1).map(|flag| format!(" {}", flag.0)).collect();
            let matcher = hook.matcher.as_ref().map(|matcher| format!(" [{matcher}]")).unwrap_or_default();
            format!("{} {}{matcher}{flags}: {:?}", hook.line, hook.moment.as_str(), hook.command)
        };
        let problems = hooks.problems.iter().map(|problem| format!("! {problem}; {}", problem.todo));
        hooks.hooks.iter().map(render_hook).chain(problems).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn hooks_are_read_in_their_order_with_their_lines() {
        let file_lines = [
            "---",
            "name: step-01",
            "hooks:",
            "  SessionStart:",
            "    - command: ./start.sh",
            "      once: true",
            "    - echo two",
            "  PreToolUse:",
            "    - {command: 'check \"$TOOL_NAME\"', critical: yes}",
            "  PostToolUse: make lint",
            "  Stop:",
            "    - command: |",
            "        first line",
            "        second line",
            "---",
            "# Step",
            "hooks:",
            "  Stop: no hook",
        ];
        let file_text = &file_lines.join("\n");
        insta::assert_snapshot!(render_hooks(file_text));
    }

    #[test]
    fn the_nested_form_of_the_client_is_read_too() {
        let file_lines = [
            "---",
            "hooks:",
            "  PreToolUse:",
            "    - matcher: Bash|Write",
            "      hooks:",
            "        - type: command",
            "          command: one",
            "          timeout: 5",
            "        - type: prompt",
            "          prompt: is this well?",
            "        - {type: command, command: two, once: true}",
            "    - matcher: \"*\"",
            "      critical: true",
            "      hooks: [{command: three}, four]",
            "  post-tool-use:",
            "    - hooks: five",
            "---",
        ];
        let file_text = &file_lines.join("\n");
        insta::assert_snapshot!(render_hooks(file_text));
    }

    #[test]
    fn a_wrong_hook_has_a_line_and_the_others_are_read() {
        let file_lines = [
            "---",
            "hooks:",
            "  PreTool:",
            "    - command: never",
            "  Stop:",
            "    - command: ''",
            "    -",
            "    - once: true",
            "    - [a, b]",
            "    - command: [a]",
            "    - {command: fine, once: perhaps, retries: 3, matcher: [x]}",
            "    - {command: both, hooks: []}",
            "    - command: last",
            "---",
        ];
        let file_text = &file_lines.join("\n");
        insta::assert_snapshot!(render_hooks(file_text));
        let file_texts = [
            "---\nhooks: make\n---\n",
            "---\nhooks: [a]\n---\n",
            "---\nhooks:\n---\n",
            "---\nname: x\nhooks: [\n---\n",
            "no front matter\n",
            "",
        ];
        let shapes: Vec<String> = file_texts.iter().map(|file_text| render_hooks(file_text)).collect();
        insta::assert_snapshot!(shapes.join("\n--\n"));
    }

    #[test]
    fn a_matcher_is_a_list_of_names() {
        let hook_with_matcher = |matcher: &str| WorkflowHook {
            moment: WorkflowHookMoment::PreToolUse,
            command: String::new(),
            matcher: Some(matcher.to_string()),
            once: false,
            critical: false,
            line: 1,
        };
        for (matcher, tool, expected) in [
            ("Bash", "Bash", true),
            ("Bash", "BashOutput", false),
            ("Bash|Write", "Write", true),
            ("Bash | Write", "Write", true),
            ("mcp__*", "mcp__a__b", true),
            ("mcp__.*__write", "mcp__a__write", true),
            ("mcp__.*__write", "mcp__a__read", false),
            ("*Edit", "NotebookEdit", true),
            ("a*a", "a", false),
            ("", "Bash", false),
        ] {
            assert_eq!(hook_with_matcher(matcher).matches_tool(tool), expected, "{matcher} {tool}");
        }
    }

    #[test]
    fn a_large_file_is_read_quickly() {
        let hooks = "    - command: make lint # x\n".repeat(100_000);
        let file_text = format!("---\nhooks:\n  Stop:\n{hooks}---\n{}", "some prose\n".repeat(500_000));
        assert_eq!(read_hooks("step.md", &file_text).hooks.len(), 100_000);
    }

    const PIECES: &str = concat!(
        "(---\n)?(hooks:|  Stop:|    - |command: |once: |\\{|\\[|\\]|\\}",
        "|matcher: |a|\n|\\*|&x |'|\"| ){0,40}\n---\n"
    );

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in PIECES) {
            read_hooks("step.md", &text);
        }
    }
}
