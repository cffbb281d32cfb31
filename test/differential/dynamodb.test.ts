import { dynamodbHarness } from '../harnesses/dynamodb.ts'
import { differ } from './differ.ts'
import { asOneClient, UNAGED } from './one-client.ts'

differ(asOneClient(dynamodbHarness()), UNAGED)
