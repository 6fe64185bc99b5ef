//! Plays one task of a script: prints, edits, waits, exits.

use std::{
    fs,
    io::{self, Write},
    path::{Component, Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};
use tribunal_workflows::{findings::finding::Evidence, tasks::brief::FindingToChallenge};

use super::{AgentScript, ReplayLine, ScriptError, ScriptStep, TaskEntry, script::RuleEntry};
use crate::prompt::{read_assigned, read_disputed, read_judged};

/// How the answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptOutputForm {
    /// As JSON lines, for the `replay` driver.
    JsonLines,
    /// As plain text, like any other command.
    PlainText,
}

/// Everything that playing a task needs from the outside.
pub struct ScriptPlayer<'a> {
    pub task_key: &'a str,
    pub prompt: &'a str,
    pub working_dir: &'a Path,
    pub is_paced: bool,
    pub output_form: ScriptOutputForm,
    pub stdout: &'a mut dyn Write,
    pub stderr: &'a mut dyn Write,
    /// Lets time pass. A task that hangs waits forever.
    pub wait_for: &'a dyn Fn(Duration),
}

impl std::fmt::Debug for ScriptPlayer<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ScriptPlayer")
            .field("task", &self.task_key)
            .field("folder", &self.working_dir)
            .finish_non_exhaustive()
    }
}

/// The exit code with which a task ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptExit(pub i32);

/// The exit code of a script that cannot do what it says. A message explains it.
const SCRIPT_FAULT_CODE: i32 = 70;

/// Plays the script's part for a task.
pub fn play_script(agent_script: &AgentScript, script_player: &mut ScriptPlayer<'_>) -> io::Result<ScriptExit> {
    let disputed_findings = read_disputed(script_player.prompt);
    if !read_judged(script_player.prompt).0.is_empty() {
        return play_judge(agent_script, script_player);
    }
    let script_task = match agent_script.find_task(script_player.task_key) {
        Ok(script_task) => script_task,
        // A challenger without a part of its own accepts every finding.
        Err(ScriptError::NoPart(_)) if !disputed_findings.is_empty() => &TaskEntry::default(),
        Err(script_error @ (ScriptError::NoPart(_) | ScriptError::Form(_))) => {
            writeln!(script_player.stderr, "{script_error}")?;
            return Ok(ScriptExit(SCRIPT_FAULT_CODE));
        }
    };
    // The findings of all steps are one list: an answer with several lists would depend on how they are joined.
    let mut raised_findings: Option<Vec<Value>> = None;
    for script_step in &script_task.steps {
        match script_step {
            // The same part may serve reviewers and challengers. A challenger raises no findings.
            ScriptStep::Findings(_) if !disputed_findings.is_empty() => {}
            ScriptStep::Findings(added_findings) => {
                raised_findings.get_or_insert_default().extend(added_findings.iter().cloned())
            }
            other_step => {
                if let Some(script_exit) = script_player.play_step(other_step)? {
                    return Ok(script_exit);
                }
            }
        }
    }
    if let Some(raised_findings) = raised_findings {
        script_player.write_answer(&format!("```json\n{}\n```", json!({ "findings": raised_findings })))?;
    }
    // A script that cannot apply its fixes must not answer as if it had.
    if !script_task.fix.is_empty() {
        match script_player.apply_fixes(script_task) {
            Ok(fixes) => script_player.write_answer(&format!("```json\n{}\n```", json!({ "fixes": fixes })))?,
            Err(fix_problem) => {
                writeln!(script_player.stderr, "{fix_problem}")?;
                return Ok(ScriptExit(SCRIPT_FAULT_CODE));
            }
        }
    }
    // A script that prints its own answer is not given a second one.
    let has_text_step = script_task.steps.iter().any(|script_step| matches!(script_step, ScriptStep::Text(_)));
    if !disputed_findings.is_empty() && (!script_task.rule.is_empty() || !has_text_step) {
        let verdicts = rule_on_findings(script_task, disputed_findings);
        script_player.write_answer(&format!("```json\n{}\n```", json!({ "verdicts": verdicts })))?;
    }
    // Only the replay driver understands this line.
    if script_player.output_form == ScriptOutputForm::JsonLines {
        script_player.write_line(&ReplayLine::Usage { usage: script_task.usage })?;
    }
    script_player.stdout.flush()?;
    Ok(ScriptExit(0))
}

/// Plays a judge. Without a part of its own, which names `judge`, it confirms everything.
fn play_judge(agent_script: &AgentScript, script_player: &mut ScriptPlayer<'_>) -> io::Result<ScriptExit> {
    let default_task = TaskEntry::default();
    let script_task = agent_script.find_judge(script_player.task_key).unwrap_or(&default_task);
    for script_step in &script_task.steps {
        if let Some(script_exit) = script_player.play_step(script_step)? {
            return Ok(script_exit);
        }
    }
    let (findings, parts) = read_judged(script_player.prompt);
    let judge_item = |id: String, texts: &[&str]| {
        let is_matching = |rule: &&RuleEntry| texts.iter().any(|text| text.contains(&rule.fits));
        match script_task.rule.iter().find(is_matching) {
            None => json!({"id": id, "verdict": "VALID"}),
            Some(rule) => json!({"id": id, "verdict": rule.verdict, "reason": rule.reason}),
        }
    };
    let finding_verdicts = findings.iter().map(|finding| judge_item(finding.id.to_string(), &[&finding.description]));
    let part_verdicts = parts.iter().map(|part| judge_item(part.id.clone(), &[&part.before, &part.after]));
    let verdicts: Vec<Value> = finding_verdicts.chain(part_verdicts).collect();
    // A script that prints its own answer is not given a second one.
    if !script_task.steps.iter().any(|script_step| matches!(script_step, ScriptStep::Text(_))) {
        script_player.write_answer(&format!("```json\n{}\n```", json!({ "verdicts": verdicts })))?;
    }
    if script_player.output_form == ScriptOutputForm::JsonLines {
        script_player.write_line(&ReplayLine::Usage { usage: script_task.usage })?;
    }
    script_player.stdout.flush()?;
    Ok(ScriptExit(0))
}

impl ScriptPlayer<'_> {
    fn play_step(&mut self, script_step: &ScriptStep) -> io::Result<Option<ScriptExit>> {
        let step_result = match script_step {
            ScriptStep::Say(step_text) => {
                // In plain text, progress would become part of the answer.
                if self.output_form == ScriptOutputForm::JsonLines {
                    self.write_line(&ReplayLine::Progress { text: step_text.clone() })?;
                }
                Ok(())
            }
            // Without pacing, a script plays as fast as it can, which is what tests want.
            ScriptStep::WaitMs(wait_ms) => {
                if self.is_paced {
                    (self.wait_for)(Duration::from_millis(*wait_ms));
                }
                Ok(())
            }
            ScriptStep::Text(step_text) => self.write_answer(step_text).map(Ok)?,
            ScriptStep::Edit { file: file_name, replace: old_text, with: new_text } => {
                self.edit_file(file_name, old_text, new_text)
            }
            ScriptStep::Write { file: file_name, text: step_text } => self.write_file(file_name, step_text),
            ScriptStep::Delete(file_name) => self
                .resolve_path(file_name)
                .and_then(|file_path| fs::remove_file(file_path).map_err(|error| error.to_string())),
            ScriptStep::Complain(step_text) => writeln!(self.stderr, "{step_text}").map(Ok)?,
            // The output is flushed first: a reader must see everything that was printed before the exit.
            ScriptStep::Exit(exit_code) => {
                self.stdout.flush()?;
                return Ok(Some(ScriptExit(*exit_code)));
            }
            ScriptStep::Hang(hangs_forever) => {
                self.stdout.flush()?;
                if *hangs_forever {
                    loop {
                        (self.wait_for)(Duration::from_secs(3600));
                    }
                }
                Ok(())
            }
            ScriptStep::Findings(_) => Ok(()),
        };
        // A failing step is part of the scripted agent's behaviour: it ends with a message and an exit code, not with
        // an error here.
        if let Err(step_problem) = step_result {
            writeln!(self.stderr, "{step_problem}")?;
            return Ok(Some(ScriptExit(SCRIPT_FAULT_CODE)));
        }
        Ok(None)
    }

    /// Does what the script says about each assigned finding. A finding about which it says nothing is left out of
    /// the answer.
    fn apply_fixes(&mut self, script_task: &TaskEntry) -> Result<Vec<Value>, String> {
        let mut fixes = Vec::new();
        for assigned_finding in read_assigned(self.prompt) {
            let Some(fix_entry) = script_task.fix.iter().find(|fix_entry| {
                matches_finding(&fix_entry.fits, &assigned_finding.description, &assigned_finding.evidence)
            }) else {
                continue;
            };
            if let Some(block_reason) = &fix_entry.blocked {
                fixes.push(json!({"id": assigned_finding.id, "status": "BLOCKED", "fix_description": block_reason}));
                continue;
            }
            if let Some(old_text) = &fix_entry.replace {
                // Without a file in the script, the finding's own place is edited.
                let finding_file = assigned_finding.place.rsplit_once(':').map_or("", |(place_file, _)| place_file);
                self.edit_file(fix_entry.file.as_deref().unwrap_or(finding_file), old_text, &fix_entry.with)?;
            }
            fixes.push(json!({
                "id": assigned_finding.id,
                "status": "FIXED",
                "fix_description": fix_entry.description,
                "verification": fix_entry.verification,
            }));
        }
        Ok(fixes)
    }

    fn edit_file(&mut self, file_name: &str, old_text: &str, new_text: &str) -> Result<(), String> {
        let file_path = self.resolve_path(file_name)?;
        let file_text = fs::read_to_string(&file_path).map_err(|io_error| format!("{file_name}: {io_error}"))?;
        // An ambiguous replacement would make a script depend on the order of the text.
        match file_text.matches(old_text).count() {
            1 => fs::write(&file_path, file_text.replacen(old_text, new_text, 1))
                .map_err(|io_error| format!("{file_name}: {io_error}")),
            match_count => {
                Err(format!("{file_name}: expected the text to replace once, found it {match_count} times: {old_text}"))
            }
        }
    }

    fn write_file(&mut self, file_name: &str, file_text: &str) -> Result<(), String> {
        let file_path = self.resolve_path(file_name)?;
        if let Some(parent_dir) = file_path.parent() {
            fs::create_dir_all(parent_dir).map_err(|io_error| format!("{file_name}: {io_error}"))?;
        }
        fs::write(&file_path, file_text).map_err(|io_error| format!("{file_name}: {io_error}"))
    }

    /// Resolves a path. Scripts only touch files in their own workspace.
    fn resolve_path(&self, file_name: &str) -> Result<PathBuf, String> {
        let relative_path = Path::new(file_name);
        // This excludes absolute paths and `..`.
        if relative_path.components().all(|path_part| matches!(path_part, Component::Normal(_))) {
            Ok(self.working_dir.join(relative_path))
        } else {
            Err(format!("{file_name}: a script can only change files in its working directory"))
        }
    }

    fn write_answer(&mut self, answer_text: &str) -> io::Result<()> {
        match self.output_form {
            ScriptOutputForm::JsonLines => self.write_line(&ReplayLine::Text { text: answer_text.to_string() }),
            ScriptOutputForm::PlainText => writeln!(self.stdout, "{answer_text}"),
        }
    }

    fn write_line(&mut self, replay_line: &ReplayLine) -> io::Result<()> {
        serde_json::to_writer(&mut *self.stdout, replay_line)?;
        writeln!(self.stdout)?;
        // Every line is flushed, so that progress is seen while the script waits.
        self.stdout.flush()
    }
}

/// What the script rules on each disputed finding. A finding about which it says nothing is valid.
fn rule_on_findings(script_task: &TaskEntry, disputed: Vec<FindingToChallenge>) -> Vec<Value> {
    let ruled_findings = disputed.into_iter().map(|disputed_finding| {
        let mut rule_entries = script_task.rule.iter();
        match rule_entries.find(|rule_entry| {
            matches_finding(&rule_entry.fits, &disputed_finding.description, &disputed_finding.evidence)
        }) {
            None => json!({"id": disputed_finding.id, "verdict": "VALID"}),
            Some(rule_entry) => json!({
                "id": disputed_finding.id,
                "verdict": rule_entry.verdict,
                "reason": rule_entry.reason,
                "counter_evidence": rule_entry.counter_evidence,
            }),
        }
    });
    ruled_findings.collect()
}

fn matches_finding(wanted_text: &str, description: &str, finding_evidence: &Evidence) -> bool {
    let evidence_text = match finding_evidence {
        Evidence::Quote { text: quote_text } => quote_text,
        Evidence::Absence { heading, .. } => heading,
        Evidence::Check { command, .. } => command,
    };
    description.contains(wanted_text) || evidence_text.contains(wanted_text)
}

#[cfg(test)]
mod tests {
    use tribunal_engine::ids::FindingId;
    use tribunal_workflows::{
        findings::{agent_role::AgentRole, finding::Severity, subject::Subject},
        tasks::brief::{AnswerContent, ReviewBrief},
    };

    use super::*;
    use crate::{
        answer::{AnswerKind, parse_answer},
        prompt,
    };

    #[test]
    fn a_scripted_challenger_rules_on_each_finding_as_its_script_does() {
        let disputed_finding = |finding_number: u32, description: &str| FindingToChallenge {
            id: FindingId(finding_number),
            severity: Severity::High,
            description: description.into(),
            evidence: Evidence::Quote { text: "q".into() },
            place: "a.md:1".into(),
        };
        let mut task_brief = ReviewBrief::new(AgentRole::Challenger, Subject::from_path("a.md", None), 1);
        task_brief.disputed =
            vec![disputed_finding(1, "wrong"), disputed_finding(2, "right"), disputed_finding(3, "unheard of")];
        let script_yaml =
            "tasks: [{task: '*', rule: [{match: wrong, verdict: INVALID, reason: r}, {match: right, verdict: VALID}]}]";
        let mut stdout_bytes = Vec::new();
        let mut script_player = ScriptPlayer {
            task_key: "challenge",
            prompt: &prompt::render_prompt(&task_brief, "q\n", None).unwrap(),
            working_dir: Path::new("."),
            is_paced: false,
            output_form: ScriptOutputForm::PlainText,
            stdout: &mut stdout_bytes,
            stderr: &mut Vec::new(),
            wait_for: &|_| {},
        };
        assert_eq!(play_script(&AgentScript::parse(script_yaml).unwrap(), &mut script_player).unwrap(), ScriptExit(0));
        let answer_text = String::from_utf8(stdout_bytes).unwrap();
        let AnswerContent::Rulings { rulings, .. } = parse_answer(&answer_text, AnswerKind::Verdicts).content else {
            panic!("{answer_text}")
        };
        let spoken_verdicts = rulings.iter().map(|ruling| format!("{} {}", ruling.id, ruling.holds));
        assert_eq!(spoken_verdicts.collect::<Vec<_>>(), ["F1 invalid", "F2 valid", "F3 valid"]);
    }
}
