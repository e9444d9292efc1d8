use std::sync::LazyLock;

use hlorank_proto::FILE_DESCRIPTOR_SET;
use prost_reflect::{DescriptorPool, MethodDescriptor, ServiceDescriptor};

/// Descriptors of every service and message.
static DESCRIPTORS: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the build has checked the descriptors")
});

/// The unary method of a call whose messages are JSON.
#[derive(Clone, Debug)]
pub(crate) struct JsonMethod {
    pub(super) method: MethodDescriptor,
}

impl JsonMethod {
    /// Returns the method of a path, such as `/hlorank.v1.ModelService/ListModels`; `None` if there is none, or if it is a
    /// stream.
    pub(super) fn of(path: &str) -> Option<Self> {
        let (service, name) = path.strip_prefix('/')?.split_once('/')?;
        let service = DESCRIPTORS.get_service_by_name(service)?;
        let method = service.methods().find(|method| method.name() == name)?;
        Self::unary(method)
    }

    fn unary(method: MethodDescriptor) -> Option<Self> {
        // The messages of a stream are frames, which JSON does not have.
        let is_unary = !method.is_client_streaming() && !method.is_server_streaming();
        is_unary.then_some(Self { method })
    }

    /// Returns every unary method of a service.
    pub(super) fn of_service(name: &str) -> Vec<Self> {
        let service = DESCRIPTORS.get_service_by_name(name);
        let methods = service.iter().flat_map(ServiceDescriptor::methods);
        methods.filter_map(Self::unary).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unary_methods_are_found_by_their_path() {
        let method = JsonMethod::of("/hlorank.v1.CostModelService/RankConfigs").unwrap();
        assert_eq!(
            method.method.input().full_name(),
            "hlorank.v1.RankConfigsRequest"
        );
        for path in [
            "/hlorank.v1.CostModelService/RankConfigsStream",
            "/a.Service/Method",
            "/",
            "",
            "RankConfigs",
        ] {
            assert!(JsonMethod::of(path).is_none(), "{path}");
        }
        assert!(JsonMethod::of_service("hlorank.v1.CostModelService").len() > 5);
    }
}
