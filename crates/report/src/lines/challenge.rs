//! Writes the challenge stage as lines: which challengers answered, and the verdicts on the findings that they disputed.
//!
//! Upheld findings are named together; a finding that was refuted or is in doubt is written with the objection to it.

use std::io::{self, Write};

use tribunal_core::{
    brief::Task,
    challenge::Ruled,
    decision::Decision,
    effect::{AskAgent, Effect},
    event::Event,
    fault::Fault,
    finding::Severity,
    ids::{AgentName, FindingId, Key},
    level::Role,
};

use super::Lines;
use crate::{
    escaped,
    style::{Sign, Style},
    words,
};

/// The column at which text below a ruling begins.
const INDENT: usize = 9;

/// The challengers of the current round and their results so far.
#[derive(Debug, Default)]
pub(super) struct Sitting {
    /// Tasks in the order in which they were asked, each with the findings that it disputes.
    tasks: Vec<(Key, Vec<FindingId>)>,
    upheld: Vec<FindingId>,
    unheard: Vec<FindingId>,
    refuted: u32,
    in_doubt: u32,
    /// Findings whose change of status was already written with their ruling.
    told: Vec<FindingId>,
}

impl Sitting {
    /// Updates the progress with the next event.
    pub(super) fn see(&mut self, event: &Event) {
        match event {
            // Challengers are numbered per round.
            Event::RoundStarted { .. } => *self = Sitting::default(),
            Event::EffectStarted {
                key, effect: Effect::Ask(AskAgent { task: Task { brief, .. } }), ..
                // A second try belongs to the challenger of the first one and gets no number of its own.
            } if brief.role == Role::Challenger && self.number(key).is_none() => {
                let disputed = brief.disputed.iter().map(|disputed| disputed.id).collect();
                self.tasks.push((key.task(), disputed));
            }
            Event::FindingRuled { finding, ruled, .. } => match ruled {
                Ruled::Valid => self.upheld.push(*finding),
                Ruled::Unheard => self.unheard.push(*finding),
                Ruled::Invalid => {
                    self.refuted += 1;
                    self.told.push(*finding);
                }
                Ruled::Ambiguous => {
                    self.in_doubt += 1;
                    self.told.push(*finding);
                }
                // A ruling of the user is not a result of the challengers.
                Ruled::Person => {}
            },
            // From here on changes of status come from fixers and are news again.
            Event::FixersDealt { .. } => self.told.clear(),
            _ => {}
        }
    }

    /// The number of a challenger, from 1 on, in the order in which they were asked.
    fn number(&self, key: &Key) -> Option<usize> {
        let task = key.task();
        self.tasks.iter().position(|(known, _)| *known == task).map(|at| at + 1)
    }

    /// The name of a challenger: `challenger 2`.
    pub(super) fn name(&self, key: &Key) -> Option<String> {
        self.number(key).map(|number| format!("challenger {number}"))
    }

    /// Returns whether the finding's change of status was already written.
    pub(super) fn has_told(&self, finding: FindingId) -> bool {
        self.told.contains(&finding)
    }

    /// Describes the verdicts: `6 upheld, 1 refuted`. `None` if nothing was disputed.
    pub(super) fn came(&self) -> Option<String> {
        let parts = [
            (self.upheld.len() as u32, "upheld"),
            (self.refuted, "refuted"),
            (self.in_doubt, "in doubt"),
            (self.unheard.len() as u32, "not heard on"),
        ];
        let parts = parts.iter().filter(|(number, _)| *number > 0);
        let parts: Vec<String> = parts.map(|(number, word)| format!("{number} {word}")).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

impl<W: Write> Lines<W> {
    /// The challenger's name; a task that was never seen has no number.
    fn challenger(&self, key: &Key) -> String {
        self.sitting.name(key).unwrap_or_else(|| Role::Challenger.to_string())
    }

    /// Writes that a challenger failed.
    pub(super) fn challenger_incomplete(&mut self, key: &Key, fault: &Fault) -> io::Result<()> {
        let name = self.challenger(key);
        self.seat(Sign::FAILED, &name, &format!("incomplete: {fault}"))
    }

    /// Writes on which findings a challenger answered, and on which it did not.
    pub(super) fn challenger_answered(
        &mut self,
        key: &Key,
        agent: &AgentName,
        silent: &[FindingId],
    ) -> io::Result<()> {
        // Of a task that was never seen it is not known what it disputes.
        let heard = self.sitting.number(key).map(|number| {
            let all = self.sitting.tasks[number - 1].1.iter();
            all.filter(|id| !silent.contains(id)).copied().collect::<Vec<_>>()
        });
        let nothing = match silent {
            [] => String::new(),
            silent => format!(", nothing on {}", words::ids(silent)),
        };
        let on = words::ids(&heard.unwrap_or_default());
        let text = format!("answered on {on}{nothing}{}", self.by(agent));
        let name = self.challenger(key);
        self.seat(Sign::DONE, &name, &text)
    }

    /// Writes the verdict on a finding that was refuted or is in doubt, with the objection to it.
    pub(super) fn ruled(&mut self, finding: FindingId) -> io::Result<()> {
        let Some(ruling) = self.rulings.get(finding).cloned() else { return Ok(()) };
        let head = match ruling.ruled {
            // Upheld findings are written together at the end of the round.
            Ruled::Valid | Ruled::Unheard => return Ok(()),
            Ruled::Invalid => format!("{finding} dismissed, invalid: {}", ruling.says()),
            Ruled::Ambiguous if ruling.to == Severity::Critical => {
                format!("{finding} is critical and {}", ruling.says())
            }
            Ruled::Ambiguous | Ruled::Person => format!("{finding} {}", ruling.says()),
        };
        let head = self.screen.wrap(6, &head);
        self.line(0, &head)?;
        let Some((note, counter)) = ruling.against() else { return Ok(()) };
        let counter = if counter.is_empty() { String::new() } else { format!("“{counter}”") };
        for text in [note, counter.as_str()].into_iter().filter(|text| !text.is_empty()) {
            let text = self.screen.wrap(INDENT, text);
            let text = self.screen.paint(Style::Dim, &text);
            self.line(0, &text)?;
        }
        Ok(())
    }

    /// Writes who has to decide about a disputed finding, and the command for it.
    pub(super) fn disputed(&mut self, decision: &Decision) -> io::Result<()> {
        let Some(run) = self.view.run.clone() else { return Ok(()) };
        let step = words::answering(&run, decision, &self.screen.program);
        let lead = format!("{} waits for {}:", decision.id, decision.owner);
        let lead = self.screen.wrap(INDENT, &lead);
        self.line(0, &lead)?;
        // The command is neither wrapped nor cut: the user copies it.
        self.line(INDENT + 2, &escaped(&step))
    }

    /// Writes the findings that were upheld, before the result of the round.
    pub(super) fn upheld(&mut self) -> io::Result<()> {
        let Sitting { upheld, unheard, .. } = &self.sitting;
        let says =
            [("upheld by challengers", words::ids(upheld)), ("no challenger heard on", words::ids(unheard))];
        for (lead, ids) in says.iter().filter(|(_, ids)| !ids.is_empty()) {
            let text = self.screen.wrap(6, &format!("{lead}: {ids}"));
            let text = self.screen.paint(Style::Dim, &text);
            self.line(0, &text)?;
        }
        Ok(())
    }
}
