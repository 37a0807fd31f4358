//! What a server may want of us: the workspace's place, an answer of the user. No model.

use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    ClientCapabilities, ClientConfig, CustomRequest, CustomResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ErrorCode, FormElicitationCapability,
    Implementation, ProgressNotificationParam, ProgressToken, ProtocolVersion, RequestId,
    RootsCapabilities,
};
#[expect(deprecated, reason = "servers that are in use ask for roots")]
use rmcp::model::{ListRootsResult, Root};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::Value;
use tokio::sync::{Notify, watch};

use super::connection::is_gone;
use super::questions::{Elicitation, Questions};

/// What outlives a connection to a server.
#[derive(Debug)]
pub(super) struct Life {
    /// The server.
    pub(super) server: String,
    /// Where the work is done.
    pub(super) root: Arc<Mutex<PathBuf>>,
    /// The questions of all servers.
    pub(super) questions: Arc<Questions>,
    /// Its tools are not what they were.
    pub(super) changed: AtomicBool,
    /// Questions of this server that are open: its calls have all the time of the world meanwhile.
    asking: AtomicUsize,
    /// Who wants to know that a call goes on.
    progress: Mutex<HashMap<ProgressToken, Arc<Notify>>>,
}

impl Life {
    pub(super) fn new(server: &str, root: Arc<Mutex<PathBuf>>, questions: Arc<Questions>) -> Self {
        Self {
            server: server.to_owned(),
            root,
            questions,
            changed: AtomicBool::new(false),
            asking: AtomicUsize::new(0),
            progress: Mutex::default(),
        }
    }

    pub(super) fn is_asking(&self) -> bool {
        self.asking.load(Ordering::Relaxed) > 0
    }

    /// Is notified when the call of a token goes on.
    pub(super) fn watch(&self, token: ProgressToken) -> Watch<'_> {
        let notify = Arc::<Notify>::default();
        lock(&self.progress).insert(token.clone(), Arc::clone(&notify));
        Watch { life: self, token, notify }
    }
}

/// News of a call.
pub(super) struct Watch<'a> {
    life: &'a Life,
    token: ProgressToken,
    notify: Arc<Notify>,
}

impl Watch<'_> {
    pub(super) async fn progress(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        lock(&self.life.progress).remove(&self.token);
    }
}

/// Our side of a connection.
#[derive(Debug, Clone)]
pub(super) struct Handler {
    pub(super) life: Arc<Life>,
    /// Whether the server is gone.
    pub(super) gone: watch::Receiver<bool>,
}

/// An answer, and what was filled in.
type Answer = (ElicitationAction, Option<Value>);

impl Handler {
    async fn ask(&self, params: Value, context: RequestContext<RoleClient>) -> Answer {
        let id = context.id.clone().into_json_value();
        let question = Elicitation {
            server: self.life.server.clone(),
            id: id.to_string(),
            message: params.get("message").and_then(Value::as_str).unwrap_or_default().to_owned(),
            request: params.to_string(),
        };
        let is_form = params.get("mode").and_then(Value::as_str).is_none_or(|it| it == "form");
        let _asking = Asking::new(&self.life.asking);
        let mut gone = self.gone.clone();
        let said = tokio::select! {
            said = self.life.questions.ask(question, id) => said,
            () = context.ct.cancelled() => return (ElicitationAction::Cancel, None),
            () = is_gone(&mut gone) => return (ElicitationAction::Cancel, None),
        };
        match said {
            None => (ElicitationAction::Decline, None),
            Some(filled) => {
                let filled = filled.and_then(|json| serde_json::from_str(&json).ok());
                let empty = || is_form.then(|| Value::Object(serde_json::Map::new()));
                (ElicitationAction::Accept, filled.or_else(empty))
            }
        }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let mut roots = RootsCapabilities::default();
        roots.list_changed = Some(true);
        capabilities.roots = Some(roots);
        let form = FormElicitationCapability::new();
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(form));
        let us = Implementation::new("tieline", env!("CARGO_PKG_VERSION"));
        // What comes after it has no handshake, and most servers do not know it.
        ClientConfig::new(capabilities, us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    #[expect(deprecated, reason = "servers that are in use ask for roots")]
    fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> impl Future<Output = Result<ListRootsResult, ErrorData>> + Send + '_ {
        let root = lock(&self.life.root).clone();
        std::future::ready(Ok(ListRootsResult::new(vec![Root::new(file_uri(&root))])))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = serde_json::to_value(&request)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let (action, content) = self.ask(params, context).await;
        let result = ElicitResult::new(action);
        Ok(match content {
            Some(content) => result.with_content(content),
            None => result,
        })
    }

    /// A question whose form is not by the book comes here.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != "elicitation/create" {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        }
        let (action, content) = self.ask(request.params.unwrap_or_default(), context).await;
        let mut result = serde_json::json!({ "action": action });
        if let (Some(content), Some(object)) = (content, result.as_object_mut()) {
            object.insert("content".to_owned(), content);
        }
        Ok(CustomResult::new(result))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        if let Some(waits) = lock(&self.life.progress).get(&params.progress_token) {
            waits.notify_one();
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.life.changed.store(true, Ordering::Relaxed);
    }
}

/// Counts a question as long as it is open.
struct Asking<'a>(&'a AtomicUsize);

impl<'a> Asking<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A directory as an address.
fn file_uri(path: &Path) -> String {
    let path = path.to_string_lossy();
    reqwest::Url::from_file_path(&*path).map_or_else(|()| format!("file://{path}"), String::from)
}

/// The id of a request as JSON, for the logs.
pub(super) fn shown(id: &RequestId) -> String {
    id.clone().into_json_value().to_string()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
