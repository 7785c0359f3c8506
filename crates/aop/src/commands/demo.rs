//! `aop demo`: the whole of it in a folder of its own, with agents that play a script. Needs nothing but this program.

use super::init::InitArgs;
use super::run::{Answers, How, Show, conduct, enrol, settings};
use crate::cli::{Global, is_project_typed};
use crate::config::StoreChoice;
use crate::output::style::{bold, clean, dim, green, yellow};
use crate::output::{CommandResult, INTERRUPTED, Reply, Screen, talk};
use crate::place::Place;
use crate::project::{Project, Session, operation_id};
use crate::prompt;
use aop_kernel::feature::FeatureRecord;
use aop_kernel::log::in_words;
use aop_kernel::question::{Question, QuestionState, QuestionStatus, ResolutionMode};
use aop_kernel::role::{Caller, Role};
use aop_kernel::status::Status;
use aop_kernel::tools::{QuestionFilter, Tool};
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_store::{QuestionPage, Service};
use aop_supervisor::{Reason, RunEnd, Takeover, Worktrees};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// See it work: three features, two questions for you, one that nobody answers
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aop demo                    answer the questions yourself: press a
  aop demo --answers auto     watch it answer itself, a few seconds

Makes a folder of its own and changes nothing else. Without a terminal it answers itself. The agents only play a script; everything around them is real.")]
pub(crate) struct DemoArgs {
    /// auto: answer the questions for me
    #[arg(long, value_parser = ["auto"])]
    answers: Option<String>,
}

const FEATURES: &[(&str, &str)] = &[
    ("checkout", include_str!("../../assets/demo/checkout.md")),
    ("search", include_str!("../../assets/demo/search.md")),
    ("newsletter", include_str!("../../assets/demo/newsletter.md")),
];

const SCENARIOS: &[(&str, &str)] = &[
    ("checkout", include_str!("../../assets/demo/checkout.json")),
    ("search", include_str!("../../assets/demo/search.json")),
    ("newsletter", include_str!("../../assets/demo/newsletter.json")),
];

/// The feature whose question is left to the clock.
const UNANSWERED: &str = "newsletter";

/// How long a person who is not there takes to think.
const THINKING: Duration = Duration::from_millis(700);

/// Runs the demonstration.
pub(crate) fn run(global: &Global, screen: &Screen, args: &DemoArgs) -> CommandResult {
    let somebody = screen.is_text() && prompt::possible();
    let auto = args.answers.is_some() || !somebody;
    if is_project_typed() {
        return Err(Refusal::invalid_argument(
            "the demonstration makes a folder of its own and takes no --project",
        )
        .hint("leave --project out; TMPDIR says below which folder it is made")
        .fact("argument", "project"));
    }
    refuse_shared_project()?;
    let root = set_up()?;
    let inside = Global { project: Some(root.clone()), json: global.json };
    super::init::run(&inside, &InitArgs {})?;
    let worktrees = furnish(&root)?;
    let session = Project::find(&inside)?.open()?;
    let specs: Vec<PathBuf> =
        FEATURES.iter().map(|(name, _)| root.join("specs").join(format!("{name}.md"))).collect();
    let specs = enrol::read(&specs)?;
    let mut settings = settings(&session, &How::default())?;
    settings.worktrees = worktrees;
    if screen.is_text() {
        introduce(&root, auto);
    }
    if args.answers.is_none() && !somebody {
        talk(
            "No terminal here: the demo answers its own questions. Run it in a terminal to answer them yourself.",
        );
    }
    let show = if screen.is_text() {
        Show::Table { bell: !auto, answers: if auto { Answers::Itself } else { Answers::Person } }
    } else {
        Show::Nothing
    };
    let end = session.wait(async {
        let run = conduct(&session, show, Takeover::IfDead, settings, specs);
        if auto {
            tokio::select! {
                end = run => end,
                failed = answer_all(&session.service) => Err(failed),
            }
        } else {
            run.await
        }
    })?;
    session.project_files();
    report(&session, &root, &end, worktrees)
}

/// A project that others work on is no place for a demonstration: its features would be played too.
fn refuse_shared_project() -> Result<(), Refusal> {
    match Place::of(Path::new(""), &StoreChoice::default())?.name() {
        None => Ok(()),
        Some(name) => Err(Refusal::invalid_argument(format!(
            "AOP_STORE names the project '{name}', and the demonstration would play its features too"
        ))
        .hint("leave `project=` out of AOP_STORE for a project of its own, or unset AOP_STORE")),
    }
}

fn introduce(root: &Path, auto: bool) {
    let how =
        if auto { "Questions are answered without you." } else { "When one asks, press a and answer it." };
    talk(&format!(
        "{}\nThree features in {}.\nTheir agents play a script; the rest is real. {how}\n",
        bold("aop demo"),
        root.display()
    ));
}

/// A folder of its own.
fn set_up() -> Result<PathBuf, Refusal> {
    let chance = ulid::Ulid::generate().to_string().to_ascii_lowercase();
    let name = format!("aop-demo-{}", &chance[chance.len() - 6..]);
    let root = std::env::temp_dir().join(name);
    std::fs::create_dir(&root).map_err(|error| cannot(&root, &error))?;
    root.canonicalize().map_err(|error| cannot(&root, &error))
}

/// Settings, specifications, scenarios, and a git repository where there is git.
fn furnish(root: &Path) -> Result<Worktrees, Refusal> {
    let write = |path: PathBuf, text: &str| {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| cannot(folder, &error))?;
        }
        std::fs::write(&path, text).map_err(|error| cannot(&path, &error))
    };
    write(root.join("aop.yaml"), include_str!("../../assets/demo/aop.yaml"))?;
    for (name, text) in FEATURES {
        write(root.join("specs").join(format!("{name}.md")), text)?;
    }
    for (name, text) in SCENARIOS {
        write(root.join(".aop/scripted").join(format!("{name}.json")), text)?;
    }
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(args).current_dir(root).env_clear().stdin(Stdio::null()).stdout(Stdio::null());
        command
            .stderr(Stdio::null())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", root);
        command.status().is_ok_and(|status| status.success())
    };
    let identity =
        ["-c", "user.name=aop demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false"];
    let commit = [&identity[..], &["commit", "--quiet", "-m", "The demonstration"]].concat();
    let made = git(&["init", "--quiet", "--initial-branch", "main"]) && git(&["add", "-A"]) && git(&commit);
    Ok(if made { Worktrees::Git } else { Worktrees::Plain })
}

/// Answers every question but the one that is left to the clock. Ends only when it cannot go on.
async fn answer_all(service: &Service) -> Refusal {
    let mut changes = service.store.changes();
    loop {
        changes.borrow_and_update();
        match open_questions(service).await {
            Ok(questions) => {
                for question in questions.iter().filter(|question| question.feature_id.as_str() != UNANSWERED)
                {
                    tokio::time::sleep(THINKING).await;
                    if let Err(refusal) = answer(service, question).await {
                        return refusal;
                    }
                }
            }
            Err(refusal) => return refusal,
        }
        if changes.changed().await.is_err() {
            return Refusal::new(ErrorCode::Internal, "the store stopped announcing changes");
        }
    }
}

async fn open_questions(service: &Service) -> Result<Vec<Question>, Refusal> {
    let filter = QuestionFilter::Only(QuestionStatus::Open);
    let page = QuestionPage { feature: None, filter, after: None, limit: 10 };
    Ok(service.store.questions(page).await?)
}

/// Answers with the first option of everything.
async fn answer(service: &Service, question: &Question) -> Result<(), Refusal> {
    let first = match &question.asked.spec {
        Some(spec) => {
            let fields = spec.questions().iter();
            let first = fields.filter_map(|field| Some((field.id(), field.options().first()?.label())));
            json!(first.collect::<std::collections::BTreeMap<_, _>>())
        }
        None => {
            let choices =
                question.asked.expected_answer.as_ref().and_then(|expected| expected.choices.as_ref());
            json!(choices.and_then(|choices| choices.first()).map_or("yes", String::as_str))
        }
    };
    let input = json!({"feature_id": question.feature_id, "question_id": question.id, "answer": first,
        "answered_by": "aop demo", "operation_id": operation_id(None)?});
    service.call(Tool::QuestionAnswer, &Caller::new(Role::Human), &input, "demo").await.map(drop)
}

/// What happened, what to look at, what to try next.
fn report(session: &Session, root: &Path, end: &RunEnd, worktrees: Worktrees) -> CommandResult {
    let page = QuestionPage { feature: None, filter: QuestionFilter::All, after: None, limit: 100 };
    let questions = session.wait(session.store().questions(page))?;
    let mut text = format!("\n{}\n", bold("What happened"));
    for question in &questions {
        text.push_str(&format!("  {}\n", happened(question)));
    }
    text.push_str(&format!("\n{} {}\n", bold("Look at, in"), bold(&root.display().to_string())));
    for (path, what) in [
        (".aop/features/checkout/decisions.md", "every step of one feature"),
        (".aop/features/search/questions.json", "questions and answers as records"),
        (".aop/runs/", "what the agents said"),
    ] {
        text.push_str(&format!("  {path}  {}\n", dim(what)));
    }
    text.push_str(&format!(
        "\n{}\n  {}\n",
        bold("Try next"),
        green(&format!("cd {}", aop_supervisor::shown::word(root)))
    ));
    let is_ready = |feature: &FeatureRecord| {
        feature.feature_id.as_str() == "checkout" && feature.status == Status::ReadyToMerge
    };
    if worktrees == Worktrees::Git && end.features.iter().any(is_ready) {
        text.push_str(&format!("  {}\n", green("aop merge --feature-id checkout")));
    }
    let is_left = |feature: &FeatureRecord| {
        !matches!(feature.status, Status::ReadyToMerge | Status::Merged | Status::Failed)
    };
    if worktrees == Worktrees::Git && end.features.iter().any(is_left) {
        text.push_str(&format!("  {}  {}\n", green("aop run"), dim("goes on with what is left")));
    }
    text.push_str(&format!("  {}\n", green("aop log --feature-id newsletter")));
    text.push_str(&format!(
        "\nOn a project of your own: {}, write what you want into a file, {}.\n",
        bold("`aop init`"),
        bold("`aop run checkout.md`")
    ));
    let data = json!({"project": root, "features": end.features, "questions": questions});
    let exit = match end.reason {
        Reason::Stopped => INTERRUPTED,
        Reason::TakenOver => 1,
        Reason::Finished | Reason::Parked => 0,
    };
    Ok(Reply::ok(Envelope::success(&data), text).exit(exit))
}

fn happened(question: &Question) -> String {
    let asked = format!("{} asked: {}", bold(question.feature_id.as_str()), clean(&question.asked.prompt));
    let end = match &question.state {
        QuestionState::Open => yellow("it is still open"),
        QuestionState::Answered { answer, by, resolution, .. } => match resolution.mode {
            ResolutionMode::DefaultByPolicy => yellow(&format!(
                "nobody answered; the declared default applies by policy: {}",
                clean(&in_words(answer))
            )),
            _ => green(&format!("answered by {}: {}", clean(by), clean(&in_words(answer)))),
        },
        QuestionState::Expired { resolution } => {
            yellow(resolution.note.as_deref().unwrap_or("nobody answered in time"))
        }
        QuestionState::Withdrawn { .. } => yellow("it was withdrawn"),
    };
    format!("{asked}\n    {end}")
}

fn cannot(path: &Path, error: &std::io::Error) -> Refusal {
    Refusal::new(ErrorCode::StoreUnavailable, format!("{}: {error}", path.display()))
        .hint("check that the folder for temporary files is writable and has space")
}
