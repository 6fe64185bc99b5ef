//! The commands that the file of a step or an agent wants to run at certain moments: `hooks:` in its front matter.
//!
//! Three forms are read: a plain command, `{command, once, critical}`, and the client's own nested form, `{matcher, hooks:
//! [{type: command, command}]}`. A mistake is a problem with its line; the other hooks are still read, in their order.
//! Whether a command may run is not decided here, and nothing is run.

use crate::{
    page::Page,
    problem::Problem,
    yaml::{self, Entry, Form, Node},
};

/// The moment at which a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    SessionStart,
    PreToolUse,
    PostToolUse,
    Stop,
}

impl Moment {
    pub const ALL: [Moment; 4] =
        [Moment::SessionStart, Moment::PreToolUse, Moment::PostToolUse, Moment::Stop];

    pub fn word(self) -> &'static str {
        match self {
            Moment::SessionStart => "SessionStart",
            Moment::PreToolUse => "PreToolUse",
            Moment::PostToolUse => "PostToolUse",
            Moment::Stop => "Stop",
        }
    }

    /// The moment of a key: `PreToolUse`, `pre-tool-use` and `pre_tool_use` are the same.
    fn of(key: &str) -> Option<Moment> {
        let plain = |word: &str| word.replace(['-', '_'], "").to_lowercase();
        Moment::ALL.into_iter().find(|moment| plain(moment.word()) == plain(key))
    }
}

/// One command with its conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    pub moment: Moment,
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

impl Hook {
    /// Whether the hook is meant for a tool. A matcher is a list of names; a `*` in a name stands for any letters.
    pub fn is_for(&self, tool: &str) -> bool {
        let Some(matcher) = &self.matcher else { return true };
        matcher.split('|').map(str::trim).any(|name| {
            // Clients write `mcp__.*` as a regular expression; both spellings mean the same here.
            let mut parts = name.split(".*").flat_map(|part| part.split('*'));
            let first = parts.next().unwrap_or_default();
            let Some(mut rest) = tool.strip_prefix(first) else { return false };
            let mut parts: Vec<&str> = parts.collect();
            let Some(last) = parts.pop() else { return rest.is_empty() };
            // The parts between stars must occur in their order, each behind the one before it.
            for part in parts {
                match rest.split_once(part) {
                    Some((_, behind)) => rest = behind,
                    None => return false,
                }
            }
            // The last part must end the name, without overlapping the parts that already matched.
            rest.ends_with(last)
        })
    }
}

/// The hooks of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// The hooks in the order of the file.
    pub all: Vec<Hook>,
    pub problems: Vec<Problem>,
}

impl Hooks {
    pub fn at(&self, moment: Moment) -> impl Iterator<Item = &Hook> {
        self.all.iter().filter(move |hook| hook.moment == moment)
    }
}

/// Reads the hooks of a file; `file_path` is only used for problems.
pub fn read(path: &str, text: &str) -> Hooks {
    let page = Page::of(text);
    let mut reader = Reader { path, above: 0, hooks: Hooks::default() };
    let Some(front) = page.front.clone() else { return reader.hooks };
    // The YAML parser counts from the front matter; problems name lines of the file.
    reader.above = text.get(..front.start).map_or(0, |above| above.matches('\n').count());
    match yaml::parse(page.front_matter().unwrap_or_default()) {
        Ok(front) => {
            let entry = front.entries().iter().find(|entry| entry.key == "hooks");
            entry.into_iter().for_each(|entry| reader.events(entry));
        }
        Err(broken) => {
            let line = broken.line.unwrap_or(1);
            reader.problem("front-matter-broken", line, format!("the front matter: {}", broken.what));
        }
    }
    reader.hooks
}

/// Reads the hooks of one file.
struct Reader<'a> {
    path: &'a str,
    above: usize,
    hooks: Hooks,
}

const SILENT: &str = "what stands here does not run";

/// What applies to all commands of a group.
#[derive(Clone, Default)]
struct Group {
    matcher: Option<String>,
    once: bool,
    critical: bool,
}

impl Reader<'_> {
    fn problem(&mut self, rule: &'static str, line: usize, what: String) {
        let problem = Problem::warning(rule, self.path, what).at(line + self.above);
        self.hooks.problems.push(match rule {
            "hook-key" => problem.todo("known are command, once, critical and matcher"),
            "hook-event" => problem.why(SILENT).todo("write SessionStart, PreToolUse, PostToolUse or Stop"),
            "front-matter-broken" => problem.why(SILENT).todo("make it valid YAML"),
            _ => problem.why(SILENT).todo("write for instance: - command: \"make lint\""),
        });
    }

    fn events(&mut self, hooks: &Entry) {
        match &hooks.value.form {
            Form::Nothing => {}
            Form::Map(events) => events.iter().for_each(|event| self.event(event)),
            Form::Scalar(_) | Form::List(_) => {
                self.problem("hook-shape", hooks.line, "`hooks` has events below it, not a value".into());
            }
        }
    }

    fn event(&mut self, event: &Entry) {
        let Some(moment) = Moment::of(&event.key) else {
            return self.problem("hook-event", event.line, format!("there is no hook event `{}`", event.key));
        };
        match &event.value.form {
            Form::Nothing => {}
            Form::List(items) => {
                items.iter().for_each(|item| self.item(moment, item, &Group::default(), true))
            }
            // One alone needs no list.
            Form::Scalar(_) | Form::Map(_) => self.item(moment, &event.value, &Group::default(), true),
        }
    }

    /// Reads a command or, at the outer level only, a group of commands.
    fn item(&mut self, moment: Moment, item: &Node, group: &Group, outer: bool) {
        match &item.form {
            Form::Scalar(_) => self.command(moment, item, group),
            Form::Map(entries) => {
                // A group's settings apply to its commands, and each command may override them.
                let (mut group, mut command, mut inner) = (group.clone(), None, None);
                for entry in entries {
                    match entry.key.as_str() {
                        "command" => command = Some(&entry.value),
                        "hooks" if outer => inner = Some(entry),
                        "matcher" => {
                            group.matcher = self.text(entry).filter(|text| !matches!(text.as_str(), "" | "*"))
                        }
                        "once" => group.once = self.flag(entry),
                        "critical" => group.critical = self.flag(entry),
                        // A hook that is not a command, such as a prompt for a model, has nothing that could be run.
                        "type" if entry.value.text() != Some("command") => {
                            let said = entry.value.text().unwrap_or("something else");
                            self.problem(
                                "hook-type",
                                entry.line,
                                format!("a hook of type `{said}` is not known here"),
                            );
                            return;
                        }
                        // These keys belong to the client, or they are descriptions.
                        "type" | "timeout" | "name" | "description" => {}
                        // An unknown key costs only itself: the command may still be right.
                        key => {
                            let what = format!("a hook has no `{key}`; the rest of it is read");
                            self.problem("hook-key", entry.line, what);
                        }
                    }
                }
                match (command, inner) {
                    (Some(command), None) => self.command(moment, command, &group),
                    (None, Some(inner)) => match &inner.value.form {
                        Form::List(items) => {
                            items.iter().for_each(|item| self.item(moment, item, &group, false))
                        }
                        _ => self.problem("hook-shape", inner.line, "`hooks` in a group is a list".into()),
                    },
                    (Some(_), Some(inner)) => {
                        self.problem(
                            "hook-shape",
                            inner.line,
                            "a hook has a command or hooks of its own, not both".into(),
                        );
                    }
                    (None, None) => {
                        self.problem("hook-command", item.line, "a hook without a command".into())
                    }
                }
            }
            Form::Nothing => self.problem("hook-command", item.line, "a hook without a command".into()),
            Form::List(_) => {
                self.problem("hook-shape", item.line, "a list stands where a hook should".into())
            }
        }
    }

    fn command(&mut self, moment: Moment, node: &Node, group: &Group) {
        let Group { matcher, once, critical } = group.clone();
        match node.text() {
            // No shell can be given a NUL byte.
            Some(text) if text.contains('\0') => {
                self.problem("hook-command", node.line, "a command with a NUL byte in it".into());
            }
            Some(text) if !text.trim().is_empty() => {
                let line = node.line + self.above;
                let command = text.trim_end().to_string();
                self.hooks.all.push(Hook { moment, command, matcher, once, critical, line });
            }
            Some(_) => self.problem("hook-command", node.line, "an empty command".into()),
            None => self.problem("hook-command", node.line, "a command that is no text".into()),
        }
    }

    fn text(&mut self, entry: &Entry) -> Option<String> {
        let text = entry.value.text().map(str::to_string);
        if text.is_none() {
            self.problem("hook-key", entry.line, format!("`{}` is no text; it is passed over", entry.key));
        }
        text
    }

    fn flag(&mut self, entry: &Entry) -> bool {
        match entry.value.text().map(str::to_lowercase).as_deref() {
            Some("true" | "yes" | "on") => true,
            Some("false" | "no" | "off") => false,
            _ => {
                let what = format!("`{}` is neither true nor false; it is taken for false", entry.key);
                self.problem("hook-key", entry.line, what);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drawn(text: &str) -> String {
        let hooks = read("step.md", text);
        let line = |hook: &Hook| {
            let marks = [("once", hook.once), ("critical", hook.critical)];
            let marks: String =
                marks.iter().filter(|mark| mark.1).map(|mark| format!(" {}", mark.0)).collect();
            let matcher = hook.matcher.as_ref().map(|matcher| format!(" [{matcher}]")).unwrap_or_default();
            format!("{} {}{matcher}{marks}: {:?}", hook.line, hook.moment.word(), hook.command)
        };
        let problems = hooks.problems.iter().map(|problem| format!("! {problem}; {}", problem.todo));
        hooks.all.iter().map(line).chain(problems).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn hooks_are_read_in_their_order_with_their_lines() {
        let text = [
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
        let text = &text.join("\n");
        insta::assert_snapshot!(drawn(text));
    }

    #[test]
    fn the_client_s_own_form_is_read_too() {
        let text = [
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
        let text = &text.join("\n");
        insta::assert_snapshot!(drawn(text));
    }

    #[test]
    fn what_is_wrong_has_a_line_and_the_rest_is_read() {
        let text = [
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
        let text = &text.join("\n");
        insta::assert_snapshot!(drawn(text));
        let shapes = [
            "---\nhooks: make\n---\n",
            "---\nhooks: [a]\n---\n",
            "---\nhooks:\n---\n",
            "---\nname: x\nhooks: [\n---\n",
            "no front matter\n",
            "",
        ];
        let shapes: Vec<String> = shapes.iter().map(|text| drawn(text)).collect();
        insta::assert_snapshot!(shapes.join("\n--\n"));
    }

    #[test]
    fn a_matcher_is_a_list_of_names() {
        let hook = |matcher: &str| Hook {
            moment: Moment::PreToolUse,
            command: String::new(),
            matcher: Some(matcher.to_string()),
            once: false,
            critical: false,
            line: 1,
        };
        for (matcher, tool, fits) in [
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
            assert_eq!(hook(matcher).is_for(tool), fits, "{matcher} {tool}");
        }
    }

    #[test]
    fn a_large_file_is_read_soon() {
        let hooks = "    - command: make lint # x\n".repeat(100_000);
        let text = format!("---\nhooks:\n  Stop:\n{hooks}---\n{}", "some prose\n".repeat(500_000));
        assert_eq!(read("step.md", &text).all.len(), 100_000);
    }

    const PIECES: &str = concat!(
        "(---\n)?(hooks:|  Stop:|    - |command: |once: |\\{|\\[|\\]|\\}",
        "|matcher: |a|\n|\\*|&x |'|\"| ){0,40}\n---\n"
    );

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in PIECES) {
            read("step.md", &text);
        }
    }
}
