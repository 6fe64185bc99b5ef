//! The texts of a prompt that are put into [marked blocks](super::marked_blocks): the subject with its criteria, and the
//! findings.

use tribunal_engine::text::sanitize_to_line;
use tribunal_workflows::{
    findings::{agent_role::AgentRole, seat_plan::SeatPlan},
    tasks::brief::ReviewBrief,
};

use super::{
    ASSIGNED_BLOCK, CHANGE_BLOCK, DISPUTED_BLOCK, JUDGED_BLOCK, PromptMaterial, code_change,
    marked_blocks::MarkedBlocks, template::TemplateValues,
};

/// The texts of a prompt that are put into marked blocks; an empty one gets no block, except for the subject.
pub(super) struct BlockTexts<'a> {
    subject_text: &'a str,
    criteria_text: String,
    known_findings: String,
    fixed_findings: String,
    assigned_json: String,
    disputed_json: String,
    change_json: String,
}

impl<'a> BlockTexts<'a> {
    /// Collects the texts of a brief and of the material that is shown with it.
    pub fn from_brief(task_brief: &ReviewBrief, prompt_material: PromptMaterial<'a>) -> BlockTexts<'a> {
        BlockTexts {
            subject_text: prompt_material.subject_text,
            criteria_text: code_change::number_criteria(prompt_material.criteria),
            known_findings: task_brief.known.join("\n"),
            fixed_findings: task_brief.fixed.join("\n"),
            assigned_json: if task_brief.assigned.is_empty() {
                String::new()
            } else {
                to_pretty_json(&task_brief.assigned)
            },
            disputed_json: if task_brief.disputed.is_empty() {
                String::new()
            } else {
                to_pretty_json(&task_brief.disputed)
            },
            change_json: match &task_brief.plan {
                SeatPlan::Judgement { parts } if !parts.is_empty() => to_pretty_json(parts),
                _ => String::new(),
            },
        }
    }

    /// All of the texts, the empty ones as well.
    pub fn all_texts(&self) -> [&str; 7] {
        [
            self.subject_text,
            &self.criteria_text,
            &self.known_findings,
            &self.fixed_findings,
            &self.assigned_json,
            &self.disputed_json,
            &self.change_json,
        ]
    }

    /// Renders the blocks, each as the value of a template.
    pub fn render_blocks(&self, task_brief: &ReviewBrief) -> TemplateValues {
        // The marks must occur in none of the texts, so all of them have to be known first.
        let marked_blocks = MarkedBlocks::new(self.all_texts().to_vec());
        let optional_block = |block_name: &str, block_text: &str| {
            if block_text.is_empty() {
                String::new()
            } else {
                format!("\n{}", marked_blocks.render_block(block_name, block_text))
            }
        };
        let subject_name = task_brief.subject.file_path().map_or_else(|| task_brief.subject.title(), String::from);
        // Criteria belong to the subject: a custom template that shows the subject shows them as well.
        let subject_block = format!(
            "\n{}",
            marked_blocks.render_block(&format!("subject {}", sanitize_to_line(&subject_name)), self.subject_text)
        ) + &optional_block("acceptance criteria", &self.criteria_text);
        let is_judge = task_brief.role == AgentRole::Judge;
        let assigned_name = if is_judge { JUDGED_BLOCK } else { ASSIGNED_BLOCK };
        vec![
            ("known", optional_block("known findings", &self.known_findings)),
            ("fixed", optional_block("fixed since the last round", &self.fixed_findings)),
            ("subject", subject_block),
            (
                "findings",
                optional_block(assigned_name, &self.assigned_json)
                    + &optional_block(DISPUTED_BLOCK, &self.disputed_json)
                    + &optional_block(CHANGE_BLOCK, &self.change_json),
            ),
        ]
    }
}

fn to_pretty_json<T: serde::Serialize>(json_items: &[T]) -> String {
    serde_json::to_string_pretty(json_items).unwrap_or_default()
}
