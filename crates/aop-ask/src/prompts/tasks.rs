//! Task tools at run time: a stream of `TaskCreate` and `TaskUpdate` calls becomes `update_plan` payloads.
//!
//! A plan is sent when a task is made and on the two transitions a user wants to see; everything else only
//! changes the state kept here. A plan never shows two steps in progress: when several are, the one started
//! last is shown. Where the plan tool is missing, the state is all there is.

use crate::json;
use crate::violation::{Report, Violation, join, show};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Whether the runtime offers `update_plan`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanTool {
    /// Payloads are sent.
    Available,
    /// Only the state is kept.
    Missing,
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not begun.
    Pending,
    /// Being worked on.
    InProgress,
    /// Finished.
    Completed,
    /// Taken off the list.
    Deleted,
}

/// A call of one of the task tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskCall {
    /// `TaskCreate`.
    Create {
        /// What is to be done.
        subject: String,
    },
    /// `TaskUpdate`.
    Update {
        /// The number the task was given, from `1` on.
        task_id: String,
        /// A new status, if it changes.
        status: Option<TaskStatus>,
        /// A new subject, if it changes.
        subject: Option<String>,
    },
}

impl TaskCall {
    /// Reads a native call; other tools and malformed calls give `None`.
    pub fn read(tool: &str, input: &Value) -> Option<Self> {
        let text = |key: &str| input.get(key).and_then(Value::as_str).map(str::to_owned);
        match tool {
            "TaskCreate" => Some(TaskCall::Create { subject: text("subject")? }),
            "TaskUpdate" => {
                let status = match input.get("status") {
                    None | Some(Value::Null) => None,
                    Some(status) => Some(TaskStatus::deserialize(status).ok()?),
                };
                Some(TaskCall::Update { task_id: text("taskId")?, status, subject: text("subject") })
            }
            _ => None,
        }
    }
}

/// Reads recorded calls: a list of `{"name": …, "input": {…}}`. Those of other tools are passed over.
///
/// # Errors
/// Every call that cannot be read.
pub fn calls(bytes: &[u8]) -> Result<Vec<TaskCall>, Vec<Violation>> {
    let value = json::read(bytes)?;
    let mut report = Report::default();
    let Value::Array(items) = &value else {
        let message = format!("recorded calls are a list, but this is {}", show(&value));
        report.add("not_a_list", "", message, "write [{\"name\": \"TaskCreate\", \"input\": {…}}, …]");
        return Err(report.into_violations());
    };
    let mut calls = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let (name, input) = (item.get("name").and_then(Value::as_str), item.get("input"));
        match (name, input.unwrap_or(&Value::Null)) {
            (Some(tool @ ("TaskCreate" | "TaskUpdate")), input) => match TaskCall::read(tool, input) {
                Some(call) => calls.push(call),
                None => {
                    let message = format!("the input of {tool} cannot be used");
                    let hint =
                        "TaskCreate has a subject; TaskUpdate a taskId, and a known status if it has one";
                    report.add("invalid_call", &join("", index), message, hint);
                }
            },
            (Some(_), _) => {}
            (None, _) => {
                let hint = "write {\"name\": …, \"input\": {…}}";
                report.add("invalid_call", &join("", index), "the call names no tool", hint);
            }
        }
    }
    let found = report.into_violations();
    if found.is_empty() { Ok(calls) } else { Err(found) }
}

/// The state behind the plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TaskMapper {
    tool: PlanTool,
    tasks: Vec<Task>,
    starts: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Task {
    subject: String,
    status: TaskStatus,
    /// Counts up with every start; the highest one in progress is shown.
    started: u64,
}

impl TaskMapper {
    /// An empty list.
    pub fn new(tool: PlanTool) -> Self {
        TaskMapper { tool, tasks: Vec::new(), starts: 0 }
    }

    /// Takes one call; gives the arguments of `update_plan` when the user is to see a change.
    pub fn apply(&mut self, call: TaskCall) -> Option<Value> {
        let tell = match call {
            TaskCall::Create { subject } => {
                self.tasks.push(Task { subject, status: TaskStatus::Pending, started: 0 });
                true
            }
            TaskCall::Update { task_id, status, subject } => self.update(&task_id, status, subject),
        };
        (tell && self.tool == PlanTool::Available).then(|| self.plan())
    }

    fn update(&mut self, task_id: &str, status: Option<TaskStatus>, subject: Option<String>) -> bool {
        let place = task_id.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let Some(task) = place.and_then(|place| self.tasks.get_mut(place)) else { return false };
        if let Some(subject) = subject {
            task.subject = subject;
        }
        let Some(to) = status else { return false };
        let from = std::mem::replace(&mut task.status, to);
        if to == TaskStatus::InProgress && from != to {
            self.starts += 1;
            task.started = self.starts;
        }
        matches!(
            (from, to),
            (TaskStatus::Pending, TaskStatus::InProgress) | (TaskStatus::InProgress, TaskStatus::Completed)
        )
    }

    /// The whole plan as the user may see it.
    pub fn plan(&self) -> Value {
        let in_progress = self.tasks.iter().filter(|task| task.status == TaskStatus::InProgress);
        let shown = in_progress.map(|task| task.started).max();
        let steps: Vec<Value> = self
            .tasks
            .iter()
            .filter_map(|task| {
                let status = match task.status {
                    TaskStatus::Deleted => return None,
                    TaskStatus::InProgress if Some(task.started) == shown => "in_progress",
                    TaskStatus::InProgress | TaskStatus::Pending => "pending",
                    TaskStatus::Completed => "completed",
                };
                Some(json!({"step": task.subject, "status": status}))
            })
            .collect();
        json!({"plan": steps})
    }
}
