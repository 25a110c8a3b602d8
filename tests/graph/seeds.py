"""The JSON examples of the seed documents, letter for letter, comments included."""

from __future__ import annotations

JOIN = """\
{
  "id": "merge_data",
  "type": "task",
  "dependencies": ["fetch_user", "fetch_orders"],
  "wait_for_all": true
}
"""

TASK = """\
{
  "node_id": "validate_customer",
  "type": "task",
  "config_ref": {
    "type_url": "svc.validate/Config@1",
    "cas_ref": "sha256:cfg001"
  },
  "dependencies": [],
  "dependents": ["kyc_check", "credit_check"],
  "retry": {
    "max_attempts": 3,
    "backoff_ms": 1000
  },
  "limits": {
    "deadline_s": 30,
    "max_hops": 100
  }
}
"""

LOOP = """\
{
  "node_id": "call_external_api",
  "type": "task",
  "config_ref": {"type_url": "svc.http/Config@1", "cas_ref": "sha256:cfg002"},
  "dependencies": ["prepare_request"],
  "dependents": ["process_response"],

  "loop": {
    "enabled": true,
    "condition": {
      "type": "cel",
      "expression": "output.status != 200"
    },
    "max_iterations": 5,
    "loop_back_to": "call_external_api",  // Can loop to self or earlier node
    "break_path": ["process_response"],
    "timeout_path": ["error_dlq"]
  }
}
"""

BRANCH = """\
{
  "node_id": "score_customer",
  "type": "task",
  "config_ref": {"type_url": "svc.scoring/Config@1", "cas_ref": "sha256:cfg003"},
  "dependencies": ["enrich_data"],
  "dependents": [],  // ← Overridden by branch

  "branch": {
    "enabled": true,
    "type": "conditional",
    "rules": [
      {
        "condition": {
          "type": "cel",
          "expression": "output.score >= 80 && ctx.enrich_data.output.revenue > 100000"
        },
        "next_nodes": ["enterprise_sales", "send_gift"]
      },
      {
        "condition": {
          "type": "cel",
          "expression": "output.score >= 50"
        },
        "next_nodes": ["standard_sales"]
      },
      {
        "condition": {
          "type": "cel",
          "expression": "output.score < 50"
        },
        "next_nodes": ["nurture_campaign"]
      }
    ],
    "default": ["manual_review"]
  }
}
"""

AGENT = """\
{
  "node_id": "qualify_lead_agent",
  "type": "agent",
  "config_ref": {
    "type_url": "svc.agent/Config@1",
    "cas_ref": "sha256:cfg004"
  },
  "dependencies": ["enrich_data"],
  "dependents": [],

  "branch": {
    "enabled": true,
    "type": "agent_driven",  // ← LLM decides
    "available_next_nodes": [
      "enterprise_sales",
      "standard_sales",
      "nurture_campaign",
      "disqualify"
    ],
    "default": ["manual_review"]
  },

  "agent_config": {
    "model": "gpt-4",
    "temperature": 0.3,
    "available_tools": ["search_database", "call_api"]
  }
}
"""

HUMAN = """\
{
  "node_id": "manager_approval",
  "type": "human",
  "config_ref": {
    "type_url": "svc.human/Config@1",
    "cas_ref": "sha256:cfg004"
  },
  "dependencies": ["validate_high_value_deal"],
  "dependents": ["setup_enterprise_account"],
  "human_config": {
    "timeout_hours": 48,
    "approvers": ["sales-manager@company.com"],
    "escalation_policy": "auto_approve_after_timeout",
    "approval_ui_url": "https://approvals.company.com"
  }
}
"""

PAYMENT = """\
{
  "node_id": "call_payment_api",
  "type": "task",
  "config_ref": "cas://sha256:payment_config",

  "loop": {
    "enabled": true,
    "condition": {
      "type": "composite",
      "operator": "AND",
      "conditions": [
        {
          "type": "cel",
          "expression": "output.status != 'success'"
        },
        {
          "type": "jsonpath",
          "query": "$.error_code",
          "operator": "in",
          "value": ["TIMEOUT", "RATE_LIMIT", "TEMP_ERROR"]
        },
        {
          "type": "cross_node_comparison",
          "left": {"source": "current", "path": "output.amount"},
          "operator": "==",
          "right": {"source": "context", "node": "calculate_total", "path": "output.final_amount"}
        }
      ]
    },
    "max_iterations": 5,
    "loop_back_to": "call_payment_api",
    "break_path": ["confirm_payment"],
    "timeout_path": ["refund_customer"]
  },

  "branch": {
    "enabled": true,
    "type": "conditional",
    "rules": [
      {
        "condition": {
          "type": "cel",
          "expression": "output.status == 'success' && output.amount >= 1000"
        },
        "next_nodes": ["send_premium_confirmation", "update_crm"]
      },
      {
        "condition": {
          "type": "cel",
          "expression": "output.status == 'success'"
        },
        "next_nodes": ["send_standard_confirmation"]
      }
    ],
    "default": ["manual_review"]
  }
}
"""

COMPENSATOR = """\
{
  "node_id": "charge_customer",
  "type": "task",
  "config": {
    "action": "stripe.charge"
  },
  "compensator": {
    "action": "stripe.refund",
    "timeout_sec": 60,
    "retry": 3
  }
}
"""

MIGRATION = """\
{
  "node_id": "version_handover",
  "type": "migration",
  "config": {
    "from_version": "1.0",
    "to_version": "2.0",
    "transform": "cas://sha256:transform_script"
  }
}
"""

LOOP_SCHEMA = """\
{
  "loop": {
    "enabled": true,
    "condition": {
      "type": "schema_validation",
      "schema": {
        "type": "object",
        "required": ["status", "data"],
        "properties": {
          "status": {"const": "success"},
          "data": {"type": "array", "minItems": 1}
        }
      },
      "invert": true  // Loop while schema does NOT match
    },
    "max_iterations": 3
  }
}
"""

CEL = """\
{
  "condition": {
    "type": "cel",
    "expression": "output.status != 200 && output.retry_count < 5"
  }
}
"""

CEL_CONTEXT = """\
{
  "condition": {
    "type": "cel",
    "expression": "output.score >= 80 && ctx.enrich_data.output.revenue > 100000"
  }
}
"""

SCHEMA_REF = """\
{
  "condition": {
    "type": "schema_validation",
    "schema_ref": "cas://sha256:schema123"
  }
}
"""

JSONPATH = """\
{
  "condition": {
    "type": "jsonpath",
    "query": "$.data.customers[?(@.tier == 'enterprise')].length()",
    "operator": ">",
    "value": 0
  }
}
"""

JSONPATH_SUM = """\
{
  "condition": {
    "type": "jsonpath",
    "query": "$.transactions[*].amount",
    "operator": "sum_gt",
    "value": 10000
  }
}
"""

CROSS_NODE = """\
{
  "condition": {
    "type": "cross_node_comparison",
    "left": {
      "source": "current",
      "path": "output.final_score"
    },
    "operator": ">",
    "right": {
      "source": "context",
      "node": "initial_score",
      "path": "output.score"
    }
  }
}
"""

CROSS_NODE_EXPRESSION = """\
{
  "condition": {
    "type": "cross_node_comparison",
    "expression": "(current.output.revenue - ctx.forecast.output.predicted_revenue) / ctx.forecast.output.predicted_revenue > 0.1"
  }
}
"""

COMPOSITE_AND = """\
{
  "condition": {
    "type": "composite",
    "operator": "AND",
    "conditions": [
      {
        "type": "cel",
        "expression": "output.status != 'success'"
      },
      {
        "type": "jsonpath",
        "query": "$.errors.length()",
        "operator": "<",
        "value": 3
      },
      {
        "type": "schema_validation",
        "schema_ref": "cas://sha256:retry_schema"
      }
    ]
  }
}
"""

COMPOSITE_OR = """\
{
  "condition": {
    "type": "composite",
    "operator": "OR",
    "conditions": [
      {"type": "cel", "expression": "output.score >= 80"},
      {
        "type": "cross_node_comparison",
        "left": {"source": "context", "node": "referral_check", "path": "output.is_referral"},
        "operator": "==",
        "right": {"value": true}
      }
    ]
  }
}
"""

PYTHON = """\
{
  "condition": {
    "type": "python_sandbox",
    "code_ref": "cas://sha256:python_evaluator",
    "timeout_ms": 1000,
    "max_memory_mb": 50
  }
}
"""

NODES = {
    "join": JOIN,
    "task": TASK,
    "loop": LOOP,
    "branch": BRANCH,
    "agent": AGENT,
    "human": HUMAN,
    "payment": PAYMENT,
    "compensator": COMPENSATOR,
    "migration": MIGRATION,
}

CONDITIONS = {
    "cel": CEL,
    "cel_context": CEL_CONTEXT,
    "schema_ref": SCHEMA_REF,
    "jsonpath": JSONPATH,
    "jsonpath_sum": JSONPATH_SUM,
    "cross_node": CROSS_NODE,
    "cross_node_expression": CROSS_NODE_EXPRESSION,
    "composite_and": COMPOSITE_AND,
    "composite_or": COMPOSITE_OR,
    "python": PYTHON,
}
