from hlorank.wire.v1.adaptation_pb2 import *
from hlorank.wire.v1.configuration_pb2 import *
from hlorank.wire.v1.cost_model_service_pb2 import *
from hlorank.wire.v1.decision_pb2 import *
from hlorank.wire.v1.graph_pb2 import *
from hlorank.wire.v1.lease_pb2 import *
from hlorank.wire.v1.measurement_pb2 import *
from hlorank.wire.v1.model_service_pb2 import *
