//! Checks a file against the table: what it sets, and everything that is wrong with it, at once.

use tribunal_bmad::yaml::{self, Entry, Form, Node};

use super::{
    kind::Value,
    nearest,
    origin::Origin,
    table::{self, NAME, Spelling},
};
use crate::complaint::Complaint;

/// A setting that a file sets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    /// The canonical path.
    pub path: String,
    /// The path as it was written.
    pub spelling: String,
    pub value: Value,
    pub line: usize,
    weak: bool,
}

/// A problem and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// A file with its line, a variable or a flag.
    pub place: String,
    pub line: Option<usize>,
    pub what: String,
    /// The line of the file, as written.
    pub stands: Option<String>,
    pub hint: Option<String>,
}

/// The result of reading a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    pub found: Vec<Found>,
    pub problems: Vec<Problem>,
    /// Keys of other programs, which were left alone.
    pub foreign: usize,
}

/// How strictly a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// A file of ours: unknown keys are refused.
    Strict,
    /// BMAD's file: only [`BMAD_SECTIONS`] are read, and unknown keys belong to BMAD.
    Lenient,
}

/// The keys that are read in BMAD's file. None of them can run a command.
const PASTED: [&str; 11] = [
    "output_folder",
    "limits",
    "tasks",
    "progress",
    "review_loop",
    "automation",
    "defaults",
    "preflight_validation",
    "menu_rate_limiting",
    "progress_display",
    "agentConfig",
];

/// Returns whether a section is only ours, in any file: a typo in it must be reported.
fn is_ours(section: &str) -> bool {
    let section = section.strip_prefix("automation.").unwrap_or(section);
    let first = section.split('.').next().unwrap_or_default();
    ["limits", "tasks", "progress", "review_loop", "agentConfig"].contains(&first)
}

/// Reads the settings of a file.
pub(crate) fn read(file: &str, text: &str, manner: Manner) -> Reading {
    read_part(file, text, manner, None)
}

/// Reads one section of a file of ours and ignores problems in the others.
pub(super) fn read_section(file: &str, text: &str, section: &str) -> Reading {
    read_part(file, text, Manner::Strict, Some(section))
}

fn read_part(file: &str, text: &str, manner: Manner, only: Option<&str>) -> Reading {
    let mut reader = Reader { file, text, manner, reading: Reading::default() };
    match yaml::parse(text) {
        Ok(root) => reader.top(&root, only),
        Err(broken) => reader.broken(&broken),
    }
    // Two spellings of one setting can only be compared after the whole file is read.
    reader.disagreements();
    reader.reading
}

/// Reads one file and collects settings and problems.
struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    manner: Manner,
    reading: Reading,
}

impl Reader<'_> {
    /// Reads the top level of the file.
    fn top(&mut self, root: &Node, only: Option<&str>) {
        match &root.form {
            Form::Map(entries) => {
                for entry in entries.iter().filter(|entry| only.is_none_or(|only| entry.key == only)) {
                    if self.manner == Manner::Lenient && !PASTED.contains(&entry.key.as_str()) {
                        self.reading.foreign += 1;
                    } else {
                        self.entry("", entry);
                    }
                }
            }
            Form::Nothing => {}
            Form::Scalar(_) | Form::List(_) => {
                self.problem(
                    root.line,
                    "settings are keys with values".into(),
                    Some("write for instance: tier: 2".into()),
                );
            }
        }
    }

    /// Reads one key: a setting, a section, or neither.
    fn entry(&mut self, above: &str, entry: &Entry) {
        let path = if above.is_empty() { entry.key.clone() } else { format!("{above}.{}", entry.key) };
        if let Some((spelling, canonical)) = table::at(&path) {
            self.value(&path, entry, spelling, canonical);
        } else if table::is_section(&path) {
            self.section(&path, entry);
        } else if self.manner == Manner::Lenient && !is_ours(above) {
            self.reading.foreign += 1;
        } else {
            // Even in BMAD's file an unknown key inside our own sections is a typo.
            let (what, hint) = unknown(above, &entry.key);
            self.problem(entry.line, what, hint);
        }
    }

    /// Reads the keys of a section.
    fn section(&mut self, path: &str, entry: &Entry) {
        match &entry.value.form {
            Form::Map(entries) => entries.iter().for_each(|entry| self.entry(path, entry)),
            // All lines below the heading are commented out.
            Form::Nothing => {}
            // BMAD may use the same word for a value of its own.
            _ if self.manner == Manner::Lenient => self.reading.foreign += 1,
            Form::Scalar(_) | Form::List(_) => {
                let first = table::keys_below(path).first().copied().unwrap_or_default();
                let what = format!("`{path}` has settings below it, not a value");
                self.problem(
                    entry.line,
                    what,
                    Some(format!("write below it, indented, for instance `{first}:`")),
                );
            }
        }
    }

    /// Reads the value of a setting.
    fn value(&mut self, path: &str, entry: &Entry, spelling: Spelling, canonical: String) {
        let kind = spelling.kind;
        // A key without a value in BMAD's file sets nothing and is no mistake.
        if self.manner == Manner::Lenient && entry.value.form == Form::Nothing {
            return;
        }
        match kind.read(&entry.value) {
            // The value leaves the choice to Tribunal, so nothing is set.
            Ok(None) => {}
            Ok(Some(value)) => self.reading.found.push(Found {
                path: canonical,
                spelling: path.to_string(),
                value,
                line: entry.line,
                weak: spelling.weak,
            }),
            Err(slip) => {
                let what = format!("`{path}` is {}; allowed is {}", slip.stands, kind.allowed());
                self.problem(entry.line, what, slip.hint);
            }
        }
    }

    /// Reports that the file is not YAML.
    fn broken(&mut self, broken: &yaml::Broken) {
        // The parser names the line where it gave up; a stray indentation above it is usually the cause.
        let (line, hint) = match stray_indent(self.text) {
            Some((line, hint)) => (Some(line), Some(hint)),
            None => (broken.line, None),
        };
        let what = broken.what.clone();
        match line {
            Some(line) => self.problem(line, what, hint),
            None => {
                let place = self.file.to_string();
                self.reading.problems.push(Problem { place, line: None, what, stands: None, hint });
            }
        }
    }

    /// Reports one setting under two spellings with two values, since it is unclear which one was meant.
    fn disagreements(&mut self) {
        let mut kept: Vec<Found> = Vec::new();
        for found in std::mem::take(&mut self.reading.found) {
            let Some(earlier) = kept.iter_mut().find(|earlier| earlier.path == found.path) else {
                kept.push(found);
                continue;
            };
            match (earlier.weak, found.weak) {
                // A weak spelling gives way in either order.
                (true, false) => *earlier = found,
                (false, true) => {}
                _ if earlier.value == found.value => {}
                _ => {
                    let what = format!(
                        "`{}` is {}; `{}` in line {}, the same setting, is {}",
                        found.spelling, found.value, earlier.spelling, earlier.line, earlier.value
                    );
                    self.problem(found.line, what, Some("remove one of the two lines".into()));
                }
            }
        }
        self.reading.found = kept;
    }

    /// Adds a problem with its line.
    fn problem(&mut self, line: usize, what: String, hint: Option<String>) {
        let stands = line.checked_sub(1).and_then(|index| self.text.lines().nth(index));
        let stands = stands.map(|line| line.trim().to_string()).filter(|line| !line.is_empty());
        let place = format!("{}, line {line}", self.file);
        self.reading.problems.push(Problem { place, line: Some(line), what, stands, hint });
    }
}

/// Describes what is wrong with an unknown key, and what was probably meant.
pub(super) fn unknown(above: &str, key: &str) -> (String, Option<String>) {
    let here = table::keys_below(above);
    // A known key in the wrong section is more likely than a typo.
    if let Some(home) = home_of(above, key) {
        return (format!("`{key}` belongs under `{home}:`"), Some(format!("move it under `{home}:`")));
    }
    let what = match above {
        "" => format!("there is no setting `{key}`"),
        above => format!("`{above}:` has no setting `{key}`"),
    };
    let hint = nearest(key, &here).map(|near| format!("did you mean `{near}`?"));
    let known = || format!("known here: {}", here.join(", "));
    // At the top level the list of known keys would be too long to help.
    (what, hint.or_else(|| (!above.is_empty()).then(known)))
}

/// Finds the only section in which this key is known, if it is not this one.
fn home_of(above: &str, key: &str) -> Option<&'static str> {
    let mut homes: Vec<&'static str> = Vec::new();
    for row in table::rows().filter(|row| !row.path.contains(NAME)) {
        // Sections have keys, too: `subagents` belongs under `review_loop`.
        let sections = row.path.match_indices('.').map(|(end, _)| &row.path[..end]);
        for whole in sections.chain([row.path]) {
            if let Some((home, last)) = whole.rsplit_once('.')
                && last == key
                && home != above
                && !homes.contains(&home)
            {
                homes.push(home);
            }
        }
    }
    match homes.as_slice() {
        [home] => Some(home),
        _ => None,
    }
}

/// Finds a block that was pasted with its original indentation, but without the key above it.
fn stray_indent(text: &str) -> Option<(usize, String)> {
    let mut above: Option<&str> = None;
    for (index, line) in text.lines().enumerate() {
        let content = line.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let key = content.split(':').next().unwrap_or_default();
        // Indentation is wrong only below a line that opens nothing.
        let stray = above.is_some_and(|above| !above.starts_with(' ') && !above.trim_end().ends_with(':'));
        if indent > 0 && stray && table::keys_below("").contains(&key) {
            let hint = format!("take {indent} blanks away before `{key}:` and every line of its block");
            return Some((index + 1, hint));
        }
        // Comments are cut off, or a line `tier: 2  # low:` would seem to open a section.
        above = Some(line.split(" #").next().unwrap_or(line));
    }
    None
}

/// Combines all problems in one error: the first one in full, the others below it.
pub(crate) fn complaint(problems: &[Problem]) -> Option<Complaint> {
    let (first, others) = problems.split_first()?;
    let mut why = String::new();
    if let Some(stands) = &first.stands {
        why.push_str(&format!("It stands in: {stands}\n"));
    }
    why.push_str("Nothing was started.");
    if !others.is_empty() {
        why.push_str("\nAlso wrong:");
    }
    for other in others {
        // The file is named once, as long as it is the same one.
        let same_file = other.file().is_some_and(|file| Some(file) == first.file());
        let place =
            other.line.filter(|_| same_file).map_or(other.place.clone(), |line| format!("line {line}"));
        let hint = other.hint.as_ref().map(|hint| format!("\n    {hint}")).unwrap_or_default();
        why.push_str(&format!("\n  {place}: {}{hint}", other.what));
    }
    let complaint = Complaint::usage(format!("{}: {}", first.place, first.what)).why(why);
    Some(match &first.hint {
        Some(hint) => complaint.todo(hint),
        None => complaint.todo("see what is allowed: tribunal schema settings"),
    })
}

impl Problem {
    /// A problem that shows only when all layers are seen together.
    pub(super) fn at(origin: Option<&Origin>, what: String, hint: Option<String>) -> Problem {
        let line = origin.and_then(|origin| origin.line);
        let name = origin.map_or("the settings", |origin| origin.name.as_str());
        let place = line.map_or(name.to_string(), |line| format!("{name}, line {line}"));
        Problem { place, line, what, stands: None, hint }
    }

    fn file(&self) -> Option<&str> {
        self.place.rsplit_once(", line ").map(|(file, _)| file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        let reading = read("tribunal.yaml", text, Manner::Strict);
        complaint(&reading.problems).map(|complaint| complaint.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_misspelt_key_is_refused_with_its_line_and_the_nearest_one() {
        insta::assert_snapshot!(said("tier: 2\nagnets:\n  use: [x]\n"), @r"
        [!] tribunal.yaml, line 2: there is no setting `agnets`
            It stands in: agnets:
            Nothing was started.
            1. did you mean `agents`?
        ");
        insta::assert_snapshot!(said("limits:\n  max_review_round: 2\n"), @r"
        [!] tribunal.yaml, line 2: `limits:` has no setting `max_review_round`
            It stands in: max_review_round: 2
            Nothing was started.
            1. did you mean `max_review_rounds`?
        ");
        insta::assert_snapshot!(said("agents:\n  use: [a]\n  a:\n    driver: comand\n"), @r"
        [!] tribunal.yaml, line 4: `agents.a.driver` is `comand`; allowed is command | replay | claude-code | codex
            It stands in: driver: comand
            Nothing was started.
            1. did you mean `command`?
        ");
        insta::assert_snapshot!(said("agentConfig:\n  perTask:\n    reviw: {primary: a}\n"), @r"
        [!] tribunal.yaml, line 3: `agentConfig.perTask:` has no setting `reviw`
            It stands in: reviw: {primary: a}
            Nothing was started.
            1. did you mean `review`?
        ");
    }

    #[test]
    fn a_key_in_the_wrong_place_is_sent_home() {
        insta::assert_snapshot!(said("max_cost: 2\n"), @r"
        [!] tribunal.yaml, line 1: `max_cost` belongs under `limits:`
            It stands in: max_cost: 2
            Nothing was started.
            1. move it under `limits:`
        ");
        insta::assert_snapshot!(said("limits:\n  retry_after: 2\n"), @r"
        [!] tribunal.yaml, line 2: `retry_after` belongs under `tasks:`
            It stands in: retry_after: 2
            Nothing was started.
            1. move it under `tasks:`
        ");
        insta::assert_snapshot!(said("subagents:\n  party: {timeout: 3}\n"), @r"
        [!] tribunal.yaml, line 1: `subagents` belongs under `review_loop:`
            It stands in: subagents:
            Nothing was started.
            1. move it under `review_loop:`
        ");
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once() {
        let text = "tier: 7\nverify: yes\nlimits:\n  max_cost: unlimited\n  max_runtime_minutes: 1800\n\
                    defaults:\n  auto_continue_threshold: 80\ntasks: fast\n";
        insta::assert_snapshot!(said(text), @r#"
        [!] tribunal.yaml, line 1: `tier` is `7`; allowed is a whole number, 0 to 4
            It stands in: tier: 7
            Nothing was started.
            Also wrong:
              line 2: `verify` is `yes`; allowed is commands, [make test, [cargo, test]]
                write the list itself, for instance ["make test"]; for none: []
              line 4: `limits.max_cost` is `unlimited`; allowed is an amount of money, more than 0
                nothing is ever unlimited: name a number
              line 5: `limits.max_runtime_minutes` is `1800`; allowed is minutes, 1 to 1440
                this looks like seconds; minutes are meant: write 30
              line 7: `defaults.auto_continue_threshold` is `80`; allowed is a fraction, 0.0 to 1.0
                a fraction is meant, not a percentage: write 0.80
              line 8: `tasks` has settings below it, not a value
                write below it, indented, for instance `required_issues:`
            1. see what is allowed: tribunal schema settings
        "#);
    }

    #[test]
    fn broken_yaml_is_named_with_its_line() {
        insta::assert_snapshot!(said("tier: 2\nverify: [\n"), @r"
        [!] tribunal.yaml, line 2: this is no YAML: unclosed bracket '['
            It stands in: verify: [
            Nothing was started.
            1. see what is allowed: tribunal schema settings
        ");
        insta::assert_snapshot!(said("tier: 2\ngoal: zero-open\ntier: 3\n"), @r"
        [!] tribunal.yaml, line 3: `tier` stands here for the second time
            It stands in: tier: 3
            Nothing was started.
            1. see what is allowed: tribunal schema settings
        ");
        insta::assert_snapshot!(said("- tier\n"), @r"
        [!] tribunal.yaml, line 1: settings are keys with values
            It stands in: - tier
            Nothing was started.
            1. write for instance: tier: 2
        ");
    }

    #[test]
    fn a_block_pasted_with_its_indentation_under_nothing_is_explained() {
        insta::assert_snapshot!(said("tier: 2  # medium\n\n  # Review Loop\n  review_loop:\n    enabled: true\n"), @r"
        [!] tribunal.yaml, line 4: this is no YAML: while parsing a block mapping, did not find expected key
            It stands in: review_loop:
            Nothing was started.
            1. take 2 blanks away before `review_loop:` and every line of its block
        ");
    }

    #[test]
    fn one_setting_with_two_values_is_refused_and_with_one_value_is_not() {
        let both = |second: u32| {
            said(&format!(
                "limits: {{max_review_rounds: 3}}\nreview_loop:\n  limits:\n    max_review_rounds: {second}\n"
            ))
        };
        assert_eq!(both(3), "");
        insta::assert_snapshot!(both(4), @r"
        [!] tribunal.yaml, line 4: `review_loop.limits.max_review_rounds` is 4; `limits.max_review_rounds` in line 1, the same setting, is 3
            It stands in: max_review_rounds: 4
            Nothing was started.
            1. remove one of the two lines
        ");
    }

    #[test]
    fn bmad_s_own_keys_are_left_alone_and_ours_are_not() {
        let text = "project_name: x\nagents: whatever\nreview_loop:\n  spice: 3\n  limits:\n    max_review_rounds: many\n";
        let reading = read("config.yaml", text, Manner::Lenient);
        assert_eq!(reading.foreign, 2);
        let said: Vec<String> = reading.problems.iter().map(|problem| format!("{problem:?}")).collect();
        assert!(said.len() == 2 && said[0].contains("spice") && said[1].contains("many"), "{said:?}");
    }
}
