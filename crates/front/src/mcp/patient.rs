//! A client that says something before it begins a session.

use std::future::Future;

use rmcp::RoleServer;
use rmcp::model::{ClientRequest, GetMeta};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// Passes over notifications and answers that come before the request which begins a session. They are
/// for nobody, and one of them is no reason to end.
pub(super) struct Patient<T> {
    transport: T,
    has_begun: bool,
}

impl<T> Patient<T> {
    pub(super) fn new(transport: T) -> Self {
        Self { transport, has_begun: false }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Patient<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.transport.receive().await?;
            match &message {
                _ if self.has_begun => return Some(message),
                RxJsonRpcMessage::<RoleServer>::Request(it) => {
                    self.has_begun = begins(&it.request);
                    return Some(message);
                }
                _ => tracing::debug!("something was said before a session began"),
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.transport.close()
    }
}

/// Newer clients begin with any request that says which version they speak.
fn begins(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => request.get_meta().protocol_version().is_some(),
    }
}
