//! Plays one task of a script: prints, edits, waits, exits.

use std::{
    fs,
    io::{self, Write},
    path::{Component, Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};
use tribunal_core::{brief::Disputed, finding::Evidence};

use super::{Line, Script, ScriptError, Step, TaskEntry};
use crate::prompt::{read_assigned, read_disputed};

/// How the answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As JSON lines, for the `replay` driver.
    Lines,
    /// As plain text, like any other command.
    Plain,
}

/// Everything that playing a task needs from the outside.
pub struct Stage<'a> {
    pub task: &'a str,
    pub prompt: &'a str,
    pub folder: &'a Path,
    pub paced: bool,
    pub form: Form,
    pub out: &'a mut dyn Write,
    pub err: &'a mut dyn Write,
    /// Lets time pass. A task that hangs waits forever.
    pub wait: &'a dyn Fn(Duration),
}

impl std::fmt::Debug for Stage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage")
            .field("task", &self.task)
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// The exit code with which a task ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended(pub i32);

/// The exit code of a script that cannot do what it says. A message explains it.
const SCRIPT_FAULT: i32 = 70;

/// Plays the script's part for a task.
pub fn play(script: &Script, stage: &mut Stage<'_>) -> io::Result<Ended> {
    let disputed = read_disputed(stage.prompt);
    let part = match script.part(stage.task) {
        Ok(part) => part,
        // A challenger without a part of its own accepts every finding.
        Err(ScriptError::NoPart(_)) if !disputed.is_empty() => &TaskEntry::default(),
        Err(error @ (ScriptError::NoPart(_) | ScriptError::Form(_))) => {
            writeln!(stage.err, "{error}")?;
            return Ok(Ended(SCRIPT_FAULT));
        }
    };
    // The findings of all steps are one list: an answer with several lists would depend on how they are joined.
    let mut findings: Option<Vec<Value>> = None;
    for step in &part.steps {
        match step {
            // The same part may serve reviewers and challengers. A challenger raises no findings.
            Step::Findings(_) if !disputed.is_empty() => {}
            Step::Findings(more) => findings.get_or_insert_default().extend(more.iter().cloned()),
            other => {
                if let Some(ended) = stage.step(other)? {
                    return Ok(ended);
                }
            }
        }
    }
    if let Some(findings) = findings {
        stage.text(&format!("```json\n{}\n```", json!({ "findings": findings })))?;
    }
    // A script that cannot apply its fixes must not answer as if it had.
    if !part.fix.is_empty() {
        match stage.fix(part) {
            Ok(fixes) => stage.text(&format!("```json\n{}\n```", json!({ "fixes": fixes })))?,
            Err(problem) => {
                writeln!(stage.err, "{problem}")?;
                return Ok(Ended(SCRIPT_FAULT));
            }
        }
    }
    // A script that prints its own answer is not given a second one.
    let answered = part.steps.iter().any(|step| matches!(step, Step::Text(_)));
    if !disputed.is_empty() && (!part.rule.is_empty() || !answered) {
        let verdicts = rule(part, disputed);
        stage.text(&format!("```json\n{}\n```", json!({ "verdicts": verdicts })))?;
    }
    // Only the replay driver understands this line.
    if stage.form == Form::Lines {
        stage.line(&Line::Usage { usage: part.usage })?;
    }
    stage.out.flush()?;
    Ok(Ended(0))
}

impl Stage<'_> {
    fn step(&mut self, step: &Step) -> io::Result<Option<Ended>> {
        let done = match step {
            Step::Say(text) => {
                // In plain text, progress would become part of the answer.
                if self.form == Form::Lines {
                    self.line(&Line::Progress { text: text.clone() })?;
                }
                Ok(())
            }
            // Without pacing, tests do not wait.
            Step::WaitMs(ms) => {
                if self.paced {
                    (self.wait)(Duration::from_millis(*ms));
                }
                Ok(())
            }
            Step::Text(text) => self.text(text).map(Ok)?,
            Step::Edit { file, replace, with } => self.edit(file, replace, with),
            Step::Write { file, text } => self.write_file(file, text),
            Step::Delete(file) => {
                self.inside(file).and_then(|path| fs::remove_file(path).map_err(|e| e.to_string()))
            }
            Step::Complain(text) => writeln!(self.err, "{text}").map(Ok)?,
            // The output is flushed first: a reader must see everything that was printed before the exit.
            Step::Exit(code) => {
                self.out.flush()?;
                return Ok(Some(Ended(*code)));
            }
            Step::Hang(yes) => {
                self.out.flush()?;
                if *yes {
                    loop {
                        (self.wait)(Duration::from_secs(3600));
                    }
                }
                Ok(())
            }
            Step::Findings(_) => Ok(()),
        };
        // A failing step is part of the scripted agent's behaviour: it ends with a message and an exit code, not with
        // an error here.
        if let Err(problem) = done {
            writeln!(self.err, "{problem}")?;
            return Ok(Some(Ended(SCRIPT_FAULT)));
        }
        Ok(None)
    }

    /// Does what the script says about each assigned finding. A finding about which it says nothing is left out of
    /// the answer.
    fn fix(&mut self, part: &TaskEntry) -> Result<Vec<Value>, String> {
        let mut fixes = Vec::new();
        for assigned in read_assigned(self.prompt) {
            let Some(entry) =
                part.fix.iter().find(|entry| fits(&entry.fits, &assigned.description, &assigned.evidence))
            else {
                continue;
            };
            if let Some(reason) = &entry.blocked {
                fixes.push(json!({"id": assigned.id, "status": "BLOCKED", "fix_description": reason}));
                continue;
            }
            if let Some(replace) = &entry.replace {
                // Without a file in the script, the finding's own place is edited.
                let place = assigned.place.rsplit_once(':').map_or("", |(file, _)| file);
                self.edit(entry.file.as_deref().unwrap_or(place), replace, &entry.with)?;
            }
            fixes.push(json!({
                "id": assigned.id,
                "status": "FIXED",
                "fix_description": entry.description,
                "verification": entry.verification,
            }));
        }
        Ok(fixes)
    }

    fn edit(&mut self, file: &str, replace: &str, with: &str) -> Result<(), String> {
        let path = self.inside(file)?;
        let text = fs::read_to_string(&path).map_err(|cause| format!("{file}: {cause}"))?;
        // An ambiguous replacement would make a script depend on the order of the text.
        match text.matches(replace).count() {
            1 => {
                fs::write(&path, text.replacen(replace, with, 1)).map_err(|cause| format!("{file}: {cause}"))
            }
            times => Err(format!("{file}: the text to replace stands there {times} times: {replace}")),
        }
    }

    fn write_file(&mut self, file: &str, text: &str) -> Result<(), String> {
        let path = self.inside(file)?;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|cause| format!("{file}: {cause}"))?;
        }
        fs::write(&path, text).map_err(|cause| format!("{file}: {cause}"))
    }

    /// Resolves a path. Scripts only touch files in their own workspace.
    fn inside(&self, file: &str) -> Result<PathBuf, String> {
        let path = Path::new(file);
        // This excludes absolute paths and `..`.
        if path.components().all(|part| matches!(part, Component::Normal(_))) {
            Ok(self.folder.join(path))
        } else {
            Err(format!("{file}: a script only touches its working folder"))
        }
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        match self.form {
            Form::Lines => self.line(&Line::Text { text: text.to_string() }),
            Form::Plain => writeln!(self.out, "{text}"),
        }
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        serde_json::to_writer(&mut *self.out, line)?;
        writeln!(self.out)?;
        // Every line is flushed, so that progress is seen while the script waits.
        self.out.flush()
    }
}

/// What the script rules on each disputed finding. A finding about which it says nothing is valid.
fn rule(part: &TaskEntry, disputed: Vec<Disputed>) -> Vec<Value> {
    let ruled = disputed.into_iter().map(|disputed| {
        let mut entries = part.rule.iter();
        match entries.find(|entry| fits(&entry.fits, &disputed.description, &disputed.evidence)) {
            None => json!({"id": disputed.id, "verdict": "VALID"}),
            Some(entry) => json!({
                "id": disputed.id,
                "verdict": entry.verdict,
                "reason": entry.reason,
                "counter_evidence": entry.counter_evidence,
            }),
        }
    });
    ruled.collect()
}

fn fits(wanted: &str, description: &str, evidence: &Evidence) -> bool {
    let evidence = match evidence {
        Evidence::Quote { text } => text,
        Evidence::Absence { heading, .. } => heading,
    };
    description.contains(wanted) || evidence.contains(wanted)
}

#[cfg(test)]
mod tests {
    use tribunal_core::{
        brief::{Brief, Content},
        finding::Severity,
        ids::FindingId,
        level::Role,
        subject::Subject,
    };

    use super::*;
    use crate::{
        answer::{Wanted, parse},
        prompt,
    };

    #[test]
    fn a_scripted_challenger_says_what_its_script_says_of_each_finding() {
        let disputed = |number: u32, description: &str| Disputed {
            id: FindingId(number),
            severity: Severity::High,
            description: description.into(),
            evidence: Evidence::Quote { text: "q".into() },
            place: "a.md:1".into(),
        };
        let mut brief = Brief::new(Role::Challenger, Subject::at("a.md", None), 1);
        brief.disputed = vec![disputed(1, "wrong"), disputed(2, "right"), disputed(3, "unheard of")];
        let script = "tasks: [{task: '*', rule: [{match: wrong, verdict: INVALID, reason: r}, {match: right, verdict: VALID}]}]";
        let mut out = Vec::new();
        let mut stage = Stage {
            task: "challenge",
            prompt: &prompt::render(&brief, "q\n", None).unwrap(),
            folder: Path::new("."),
            paced: false,
            form: Form::Plain,
            out: &mut out,
            err: &mut Vec::new(),
            wait: &|_| {},
        };
        assert_eq!(play(&Script::parse(script).unwrap(), &mut stage).unwrap(), Ended(0));
        let text = String::from_utf8(out).unwrap();
        let Content::Rulings { rulings } = parse(&text, Wanted::Verdicts).content else { panic!("{text}") };
        let said = rulings.iter().map(|ruling| format!("{} {}", ruling.id, ruling.holds));
        assert_eq!(said.collect::<Vec<_>>(), ["F1 invalid", "F2 valid", "F3 valid"]);
    }
}
