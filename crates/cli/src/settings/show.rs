//! Shows the settings in force to users and programs: every value, where it comes from and what it may be.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use tribunal_bmad::ROSTER_PATH;
use tribunal_core::text::cut;
use tribunal_report::{Screen, Style, escaped};

use super::{
    kind::{Kind, Value, in_its_unit},
    layers::{Effective, variable_for},
    origin::{Layer, Origin},
    read::{Problem, Reading},
    resolve::Survey,
    roster::Roster,
    table::{self, Row},
    typed::TypedSettings,
};

/// The document of `tribunal inspect settings`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document {
    schema: &'static str,
    /// The project, or the one file that is shown.
    of: String,
    settings: Vec<Shown>,
    /// Problems of the file, and names that lead nowhere.
    problems: Vec<Wrong>,
    /// The number of keys that belong to BMAD.
    foreign: usize,
    /// The project's own personas for parties; null if the built-in ones are used, or if only one file is shown.
    roster: Option<Personas>,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Personas {
    /// The file, relative to the project's root.
    origin: &'static str,
    names: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Shown {
    path: String,
    /// The value in the unit of the setting; null if it is not set and follows from something else.
    value: Json,
    /// The layer: default, user, bmad, project, environment or flags.
    layer: &'static str,
    /// The file with its line, the variable or the flag.
    origin: String,
    allowed: String,
    about: &'static str,
    /// Whether this version uses the setting; otherwise it is only accepted.
    used: bool,
    variable: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Wrong {
    /// The file with its line, the variable or the flag.
    place: String,
    line: Option<usize>,
    what: String,
    hint: Option<String>,
}

impl Document {
    pub fn of_project(effective: &Effective, survey: &Survey, of: String) -> Document {
        // Origins inside the project are given relative to its root.
        let settings = lines(effective).into_iter().map(|line| line.document(&of)).collect();
        let Roster { personas, warning } = &survey.roster;
        let names: Vec<String> = personas.iter().map(|persona| persona.name.clone()).collect();
        Document {
            schema: SCHEMA,
            settings,
            problems: survey.problems.iter().map(|problem| Wrong::of(problem, &of)).collect(),
            of,
            foreign: 0,
            roster: (!names.is_empty()).then_some(Personas { origin: ROSTER_PATH, names }),
            warnings: warning.iter().cloned().collect(),
        }
    }

    pub fn of_file(reading: &Reading, of: String, layer: Layer) -> Document {
        let settings = found(reading, &of, layer).into_iter().map(|line| line.document("")).collect();
        let problems = reading.problems.iter().map(|problem| Wrong::of(problem, "")).collect();
        let foreign = reading.foreign;
        Document { schema: SCHEMA, of, settings, problems, foreign, roster: None, warnings: Vec::new() }
    }
}

const SCHEMA: &str = "tribunal.settings/1";

impl Wrong {
    fn of(problem: &Problem, root: &str) -> Wrong {
        Wrong {
            place: within(root, &problem.place),
            line: problem.line,
            what: problem.what.clone(),
            hint: problem.hint.clone(),
        }
    }
}

/// A place with the project's files relative to its root.
fn within(root: &str, place: &str) -> String {
    let inside = place.strip_prefix(root).filter(|_| !root.is_empty());
    inside.map_or(place, |rest| rest.trim_start_matches('/')).to_string()
}

/// One setting, ready to be shown.
struct Line {
    row: &'static Row,
    path: String,
    set: Option<(Value, Origin)>,
}

impl Line {
    fn is_changed(&self) -> bool {
        self.set.as_ref().is_some_and(|(_, origin)| origin.layer != Layer::Default)
    }

    fn value(&self) -> String {
        match &self.set {
            // A value may contain anything, even what controls a terminal.
            Some((value, _)) => escaped(&with_unit(self.row.kind, value)),
            None => "-".to_string(),
        }
    }

    fn origin(&self, root: &str) -> String {
        self.set.as_ref().map_or("not set".to_string(), |(_, origin)| within(root, &origin.to_string()))
    }

    fn document(&self, root: &str) -> Shown {
        Shown {
            path: self.path.clone(),
            value: self.set.as_ref().map_or(Json::Null, |(value, _)| in_its_unit(self.row.kind, value)),
            layer: self.set.as_ref().map_or(Layer::Default, |(_, origin)| origin.layer).word(),
            origin: self.origin(root),
            allowed: self.row.kind.allowed(),
            about: self.row.about,
            used: self.row.is_used(),
            variable: variable_for(&self.path),
        }
    }
}

/// Formats a value with its unit.
fn with_unit(kind: Kind, value: &Value) -> String {
    match (kind, value) {
        (Kind::Minutes, Value::Whole(seconds)) if seconds % 60 == 0 => format!("{} min", seconds / 60),
        // A number of seconds that is not a whole number of minutes is shown as it is stored.
        (Kind::Minutes | Kind::Seconds { .. }, value) => format!("{value} s"),
        (Kind::Percent, value) => format!("{value} %"),
        _ => value.to_string(),
    }
}

/// The default of a setting as it would be written into a file; `None` if it has none.
pub(crate) fn written_default(path: &str) -> Option<String> {
    let (spelling, _) = table::at(path)?;
    let value = spelling.row.default_in(&TypedSettings::default())?;
    // Whole numbers are written in the unit of the setting; all other values format themselves.
    Some(match in_its_unit(spelling.row.kind, &value) {
        Json::Number(number) if !number.is_f64() => number.to_string(),
        _ => value.to_string(),
    })
}

/// All settings, with one line per name for those that have a name in their path.
fn lines(effective: &Effective) -> Vec<Line> {
    let mut lines = Vec::new();
    for row in table::rows() {
        // Such a row appears once for every name that is set, and not at all without one.
        if table::is_free(row.path) {
            let named = effective.values.iter().filter(|(path, _)| {
                table::at(path).is_some_and(|(spelling, _)| spelling.row.path == row.path)
            });
            lines.extend(named.map(|(path, setting)| Line {
                row,
                path: path.clone(),
                set: Some((setting.value.clone(), setting.origin.clone())),
            }));
        } else {
            let set = effective.values.get(row.path);
            let set = set.map(|setting| (setting.value.clone(), setting.origin.clone()));
            lines.push(Line { row, path: row.path.to_string(), set });
        }
    }
    lines
}

/// The settings of one file.
fn found(reading: &Reading, name: &str, layer: Layer) -> Vec<Line> {
    let line = |found: &super::read::Found| {
        let (spelling, _) = table::at(&found.path)?;
        let origin = Origin { layer, name: name.to_string(), line: Some(found.line) };
        Some(Line { row: spelling.row, path: found.path.clone(), set: Some((found.value.clone(), origin)) })
    };
    reading.found.iter().filter_map(line).collect()
}

/// Draws all used settings by section, with those that are set marked. Unused ones appear only if they are set or with
/// `show_all`.
pub(crate) fn draw(effective: &Effective, root: &str, all: bool, screen: &Screen) -> String {
    let lines = lines(effective);
    let used: Vec<&Line> = lines.iter().filter(|line| line.row.is_used()).collect();
    let later: Vec<&Line> =
        lines.iter().filter(|line| !line.row.is_used() && (all || line.is_changed())).collect();
    // The number is shown, so that the user knows that there are more.
    let hidden = lines.len() - used.len() - later.len();
    let mut out = String::new();
    let mut section = "";
    for line in &used {
        // A new section gets its heading once.
        let next = line.path.split_once('.').map_or("", |(section, _)| section);
        if next != section {
            let _ = writeln!(out, "{}", screen.paint(Style::Bold, &format!("{next}:")));
            section = next;
        }
        draw_line(&mut out, line, root, screen);
    }
    if !later.is_empty() {
        let _ = writeln!(out, "{}", screen.paint(Style::Bold, "accepted; not used by this version:"));
    }
    for line in &later {
        draw_line(&mut out, line, root, screen);
    }
    let changed = lines.iter().filter(|line| line.is_changed()).count();
    let mut closing = format!("* set by somebody ({changed}); the others are defaults.");
    if hidden > 0 {
        let _ = write!(closing, " {hidden} more are accepted and not used by this version: --all");
    }
    let _ = writeln!(out, "\n{}", screen.wrap(0, &closing));
    out
}

/// Draws what the settings lead to: the project's own personas, and problems.
pub(crate) fn draw_survey(survey: &Survey, root: &str, screen: &Screen) -> String {
    let mut out = String::new();
    let names: Vec<&str> = survey.roster.personas.iter().map(|persona| persona.name.as_str()).collect();
    if !names.is_empty() {
        let text = format!("personas of parties, from {ROSTER_PATH}: {}", names.join(", "));
        let _ = writeln!(out, "{}", screen.wrap(0, &escaped(&text)));
    }
    if let Some(warning) = &survey.roster.warning {
        let _ = writeln!(out, "{}", screen.wrap(0, &escaped(&format!("[W] {warning}"))));
    }
    for problem in &survey.problems {
        draw_problem(&mut out, &within(root, &problem.place), problem, screen);
    }
    out
}

/// Cuts a line to the screen. Unlike [`Screen::fit_text`] it keeps the blanks between columns.
fn fitting(screen: &Screen, line: &str) -> String {
    screen.width.map_or(line.to_string(), |width| cut(line, width.saturating_sub(1)))
}

/// Draws one setting.
fn draw_line(out: &mut String, line: &Line, root: &str, screen: &Screen) {
    let mark = if line.is_changed() { "*" } else { " " };
    let (name, width) = match line.path.split_once('.') {
        // The section is printed above, so its name is not repeated.
        Some((_, key)) if line.row.is_used() => (key, 24),
        // A setting without a section has no name to shorten.
        None => (line.path.as_str(), 24),
        Some(_) => (line.path.as_str(), 45),
    };
    let name = escaped(name);
    let style = if line.is_changed() { Style::Bold } else { Style::Plain };
    let allowed = line.row.kind.allowed();
    let origin = escaped(&line.origin(root));
    match screen.width {
        Some(narrow) if narrow < 100 => {
            let value = cut(&line.value(), 13);
            let head = format!("{mark} {name:<24} {value:<14}");
            // Users look for the origin, so it is never cut; if it does not fit, it gets a line of its own.
            let fits = head.chars().count() + 1 + origin.chars().count() < narrow;
            let (head, below) = if fits { (format!("{head} {origin}"), None) } else { (head, Some(origin)) };
            let _ = writeln!(out, "{}", screen.paint(style, &fitting(screen, head.trim_end())));
            if let Some(origin) = below {
                let _ = writeln!(out, "    {}", screen.paint(style, &origin));
            }
            let _ = writeln!(out, "{}", screen.paint(Style::Dim, &screen.wrap(4, &allowed)));
        }
        _ => {
            let value = cut(&line.value(), 40);
            let head = format!("{mark} {name:<width$} {value:<14} {origin:<24}");
            let tail = screen.paint(Style::Dim, &screen.fit(head.chars().count() + 1, &allowed));
            let _ = writeln!(out, "{} {tail}", screen.paint(style, &head));
        }
    }
}

/// Draws one file alone: what it sets, and its problems.
pub(crate) fn draw_file(reading: &Reading, name: &str, screen: &Screen) -> String {
    let mut out = String::new();
    for line in found(reading, name, Layer::Project) {
        let at = line.set.as_ref().and_then(|(_, origin)| origin.line).unwrap_or_default();
        let note = if line.row.is_used() { "" } else { "  accepted; not used by this version" };
        let text = format!("line {at:<4} {:<44} {:<14}{note}", escaped(&line.path), line.value());
        let _ = writeln!(out, "{}", fitting(screen, text.trim_end()));
    }
    for problem in &reading.problems {
        let place = problem.line.map(|line| format!("line {line}")).unwrap_or_default();
        draw_problem(&mut out, &place, problem, screen);
    }
    let _ = writeln!(out, "settings: {}, problems: {}", reading.found.len(), reading.problems.len());
    // Users of BMAD's file would otherwise wonder why these keys are missing.
    if reading.foreign > 0 {
        let _ = writeln!(out, "[i] keys that are BMAD's own and were left alone: {}", reading.foreign);
    }
    out
}

/// Draws one problem with its hint.
fn draw_problem(out: &mut String, place: &str, problem: &Problem, screen: &Screen) {
    let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
    let _ = writeln!(out, "[!] {}", escaped(&format!("{place}{}", problem.what)));
    if let Some(hint) = &problem.hint {
        let _ = writeln!(out, "{}", screen.wrap(4, hint));
    }
}
