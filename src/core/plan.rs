//! What an agent means to do.

/// A plan, as the agent told it last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// A list.
    Steps(Vec<PlanStep>),
    /// A document.
    Document {
        /// Markdown.
        text: String,
        /// The file that it is in, as the agent names it.
        path: Option<String>,
    },
    /// The agent took it back.
    Removed,
}

impl Plan {
    /// How far it is, if it has steps.
    pub fn progress(&self) -> Option<PlanProgress> {
        let Self::Steps(steps) = self else { return None };
        let first = |status| steps.iter().find(|step| step.status == status);
        let done = steps.iter().filter(|step| step.status == PlanStatus::Completed).count();
        let step = first(PlanStatus::InProgress).or_else(|| first(PlanStatus::Pending));
        Some(PlanProgress { done, total: steps.len(), step: step.map(|step| step.content.clone()) })
    }
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanStep {
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: PlanStatus,
}

/// How far a plan's step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanStatus {
    /// Not begun.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
}

/// How far a plan is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanProgress {
    /// Steps that are done.
    pub done: usize,
    /// All steps.
    pub total: usize,
    /// The step that is being worked on, else the first that is not begun; `None` when all are done.
    pub step: Option<String>,
}
